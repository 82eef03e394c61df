"""Predicts the vocoder's statistics before it runs, from trunk, excitation and style.

A ridge regression of low rank, fitted on the model's own decodes, predicts most of their variation. The rest
is not linear, and is estimated from the regression's errors on the most similar known utterances.

Such *statistics* are the mean and the variance by which the vocoder normalises each channel over a segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.extras import shipped_arrays
from kokoro_lab.graphs.signatures import STFT_SIZE_SAMPLES, VOICED_HZ
from kokoro_lab.model.prosody import Prosody
from kokoro_lab.scheduling.one_thread import product

Values = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


def features(prosody: Prosody) -> Values:
    """The features of a segment that the predictor uses, all known before the vocoder runs.

    Returns
    -------
    numpy.ndarray
        float32: mean, deviation and mean positive part of each trunk channel; mean and deviation of the
        excitation's spectrum, and their logarithms; the first 128 numbers of the style; log and inverse
        length; voiced share; mean and deviation of log F0 and of energy.
    """
    parts = _parts(prosody.trunk[0])
    spectrum = _spectrum(prosody.excitation[0])
    source = np.concatenate([spectrum.mean(0), spectrum.std(0)])
    return np.concatenate(
        [
            *(part.mean(1) for part in parts),
            *(part.std(1) for part in parts),
            *(np.maximum(part, 0).mean(1) for part in parts),
            source,
            np.log(source + 1e-5),
            prosody.style[0, :128],
            length_and_pitch(prosody.f0_hz, prosody.energy),
        ]
    ).astype(np.float32)


def length_and_pitch(f0_hz: Values, energy: Values) -> list[Any]:
    """Log and inverse length; voiced share; mean and deviation of log F0 and of energy."""
    voiced = f0_hz[f0_hz > VOICED_HZ]
    pitch = np.log(voiced) if len(voiced) else np.zeros(1, np.float32)
    frames = len(f0_hz)
    shape = [np.log(frames), 10 / frames, len(voiced) / frames]
    return [*shape, pitch.mean(), pitch.std(), energy.mean(), energy.std()]


def _spectrum(excitation: Values) -> Values:
    """Magnitudes of every fourth frame of the vocoder's own STFT, (n, 11): enough for their averages."""
    size = STFT_SIZE_SAMPLES
    frames = excitation[: len(excitation) // size * size].reshape(-1, size)
    return np.concatenate([np.abs(np.fft.rfft(part * HANN)).astype(np.float32) for part in _parts(frames)])


def _parts(rows: Values) -> list[Values]:
    """Parts of a few rows: for a larger array the system would allocate and clear new memory each time."""
    return np.array_split(rows, 16)


HANN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(STFT_SIZE_SAMPLES) / STFT_SIZE_SAMPLES)).astype(np.float32)
WHISPERS = frozenset({"af_nicole"})
"""Whispering voices. The statistics of such a voice by itself are predicted like those of any other voice.
Those of a blend of a whispering voice and another one cannot be predicted: they are not linear in the voices
of the blend, and with predicted statistics blends had a PESQ of 2.9 to 3.3."""
CREAKS = frozenset({"bm_lewis"})
"""Voices with an irregular creak that the predictor cannot see: their PESQ is 4.1, that of other voices
4.5."""


@dataclass(frozen=True, slots=True, eq=False)
class Bend:
    """Estimates a regression's error from its errors on known utterances, by kernel regression with a
    Gaussian.

    Parameters
    ----------
    scale : numpy.ndarray
        float64 (R,): the change in the targets, in their units, for a step of 1 in each coordinate.
    points : numpy.ndarray
        float64 (N, R): the regression's coordinates of the known utterances, scaled.
    weights : numpy.ndarray
        float64 (N, R): the correction that each known utterance adds to the coordinates of an equal
        utterance.
    reach : float
        The squared distance at which a known utterance adds 1/e of that correction.
    """

    scale: Doubles
    points: Doubles
    weights: Doubles
    reach: float

    def at(self, coordinates: Values) -> Values:
        """The correction of `coordinates`, float32 (R,) or (M, R); 0 far from every known utterance.

        In double precision, because large weights cancel: in single, their rounding errors would remain.
        """
        scaled = coordinates * self.scale
        own, known = (np.einsum("...r,...r->...", rows, rows) for rows in (scaled, self.points))
        distance = own[..., np.newaxis] + known - 2 * product(scaled, self.points.T)
        found: Doubles = product(np.exp(-distance / self.reach), self.weights)
        return found.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class StatisticsPredictor:
    """Regression of low rank from `features` to means and log variances; `tuning.predictor_fit` makes it.

    Parameters
    ----------
    voices : frozenset of str
        The voices on which the predictor was fitted. Its predictions for other voices are far off.
    feature_mean, feature_deviation : numpy.ndarray
        float32 (F,): features are standardised with them.
    inner, outer : numpy.ndarray
        float32 (F, R) and (R, 2·8448).
    target_mean, unit : numpy.ndarray
        float32 (2·8448,): the mean of the targets, and the error in each target that counts as 1.
    bend : Bend, optional
        Added to the R coordinates between `inner` and `outer`.
    """

    voices: frozenset[str]
    feature_mean: Values
    feature_deviation: Values
    inner: Values
    outer: Values
    target_mean: Values
    unit: Values
    bend: Bend | None = None

    def predict(self, prosody: Prosody) -> tuple[Values, Values]:
        """Mean and variance of each channel, float32 (8448,) each. Layers that normalise the same signal
        share its channels."""
        return self.told(features(prosody))

    def told(self, inputs: Values) -> tuple[Values, Values]:
        """Mean and variance of each channel, float32, for one vector of features."""
        target = self.targets(inputs)
        half = len(target) // 2
        return target[:half], np.exp(target[half:])

    def targets(self, inputs: Values) -> Values:
        """Means and log variances, float32 (2·8448,) or (M, 2·8448), for `features`, (F,) or (M, F)."""
        coordinates = product((inputs - self.feature_mean) / self.feature_deviation, self.inner)
        if self.bend is not None:
            coordinates = coordinates + self.bend.at(coordinates)
        found: Values = self.target_mean + product(coordinates, self.outer)
        return found

    def doubts(self, parts: Sequence[str]) -> str | None:
        """Why a voice mixed from `parts` should be decoded with exact statistics; None if it need not."""
        unknown = sorted(set(parts) - self.voices)
        if unknown:
            return f"the statistics predictor was not fitted on {', '.join(unknown)}"
        creaks = sorted(CREAKS.intersection(parts))
        if creaks:
            return f"{', '.join(creaks)} creaks, and that is not predicted well"
        whispers = sorted(WHISPERS.intersection(parts))
        if whispers and len(parts) > 1:
            return f"{', '.join(whispers)} whispers, and blends with a whisper are not predicted well"
        return None

    def of_variant(self, variant: str, before: int = 0) -> StatisticsPredictor:
        """The predictor of a variant, whose integers shift the vocoder's statistics by a small constant
        amount.

        `scripts/statistics_shifts.py` measures the shifts. A variant without measured shifts is not shifted.
        The first `before` channels are not shifted either, since they belong to the trunk and not to the
        vocoder.
        """
        shifts = shipped_arrays(SHIFTS_FILE)
        if variant not in shifts:
            return self
        shift = np.pad(shifts[variant].reshape(2, -1), ((0, 0), (before, 0))).ravel()
        return replace(self, target_mean=(self.target_mean + shift * self.unit).astype(np.float32))

    def save(self, path: Path) -> None:
        """Write the predictor to `path`, and the rounded matrix `outer` to several files beside it.

        All rows of `outer` are rounded with one step, so that long rows have many levels and short ones few.
        The step is a hundredth of the prediction's own error.
        """
        arrays: dict[str, npt.NDArray[Any]] = {
            "voices": np.array(sorted(self.voices)),
            "feature_mean": self.feature_mean,
            "feature_deviation": self.feature_deviation,
            "inner": self.inner.astype(np.float16),
        }
        if self.bend is not None:
            points = np.rint(self.bend.points / self.bend.scale / POINT_STEP)
            arrays |= {
                "points": points.astype(np.int16),
                "weights": self.bend.weights.astype(np.float16),
                "scale": self.bend.scale,
                "reach": np.array(self.bend.reach),
            }
        _write(path, arrays)
        for stale in _beside(path):
            stale.unlink()
        files = -(-len(self.unit) // TARGETS_A_FILE)
        for number, part in enumerate(np.array_split(np.arange(len(self.unit)), files), start=1):
            outer = np.rint(self.outer[:, part] / self.unit[part] / OUTER_STEP)
            kept = {"target_mean": self.target_mean[part], "unit": self.unit[part]}
            _write(path.with_stem(f"{path.stem}_{number}"), kept | {"outer": outer.astype(np.int16)})

    @classmethod
    def load(cls, path: Path | None = None) -> StatisticsPredictor:
        """Read the predictor from `path` and the files beside it, or the one that the package ships."""
        path = path or PREDICTOR_FILE
        there, *parts = (shipped_arrays(one) for one in (path, *_beside(path)))
        target_mean, unit, outer = (
            np.concatenate([part[name] for part in parts], axis=-1)
            for name in ("target_mean", "unit", "outer")
        )
        outer = outer.astype(np.float32)
        outer *= np.float32(OUTER_STEP)  # in place: a copy would take 25 MB
        outer *= unit
        bend = None
        if "points" in there:
            scale = there["scale"].astype(np.float64)
            points = there["points"] * POINT_STEP * scale
            bend = Bend(scale, points, there["weights"].astype(np.float64), float(there["reach"]))
        return cls(
            frozenset(str(voice) for voice in there["voices"]),
            there["feature_mean"],
            there["feature_deviation"],
            there["inner"].astype(np.float32),
            outer,
            target_mean,
            unit,
            bend,
        )


def _write(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]  # NumPy types the keyword for pickling alone


def _beside(path: Path) -> list[Path]:
    """The files of `outer`, in order."""
    return sorted(path.parent.glob(f"{path.stem}_[1-9]{path.suffix}"))


TARGETS_A_FILE = 8704
"""The most targets in a file: with a rank of 192, a file is then under 2 MiB."""
OUTER_STEP = 5e-4
"""The rounding step of `outer`, in units of each target; coordinates vary by about 1."""
POINT_STEP = 1 / 16
"""Step of a known utterance's coordinates, which were rounded before the weights were fitted."""
PREDICTOR_FILE = Path(__file__).parent / "statistics_predictor.npz"
SHIFTS_FILE = Path(__file__).parent / "statistics_shifts.npz"
"""The file with, for each variant, float16 (2·8448,): the mean difference of its statistics from those of
fp32, in units of each target."""
