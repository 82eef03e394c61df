"""From token ids to samples. `Decoder` is what the engine knows; how it decodes is behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kokoro_lab.config import EngineConfig
from kokoro_lab.datatypes import Samples
from kokoro_lab.dsp import require_finite
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.model.artefacts import stages_folder
from kokoro_lab.model.graphs import DURATIONS, frames_of, with_durations
from kokoro_lab.model.graphs import signature as signature_of
from kokoro_lab.model.native import native_operators
from kokoro_lab.model.prosody import Prosody, ProsodyModel
from kokoro_lab.model.providers import make_session
from kokoro_lab.model.statistics import StatisticsPredictor
from kokoro_lab.model.vocoder import LATER_WINDOW_FRAMES, Vocoder, Windows
from kokoro_lab.model.voices import Voice


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """One segment on its way out of the model.

    Parameters
    ----------
    durations : numpy.ndarray
        int64, one per input id with both pads, in frames of 600 samples (25 ms).
    blocks : iterator of numpy.ndarray
        float32 mono at 24 kHz, in order, each checked to be finite and made when it is asked for;
        together `600 * durations.sum()` samples.
    """

    durations: npt.NDArray[np.int64]
    blocks: Iterator[Samples]


class Decoder(Protocol):
    """What speaks a segment. Safe to call from several threads."""

    @property
    def details(self) -> Mapping[str, str]:
        """What else a result should record of how this decodes."""

    def predicts(self, voice: Voice) -> str | None:
        """None if it can decode `voice` with predicted statistics, else the reason why not."""

    def decode(
        self,
        token_ids: Sequence[int],
        style: npt.NDArray[np.float32],
        speed: float,
        *,
        predicted: bool = False,
        urgent: bool = True,
    ) -> Decoded:
        """Speak 1 to 510 token ids (without pads) with a style vector, float32 (1, 256).

        With `predicted` statistics the first block is there early, and earliest if it is `urgent`;
        without, the samples are those of the published model.

        Raises
        ------
        SynthesisError
            The model gave samples that are not finite.
        """


class WholeGraph:
    """An export as it was published, run once a segment.

    Parameters
    ----------
    path : Path
        A Kokoro export; its input names are found out.
    """

    def __init__(self, path: Path, config: EngineConfig) -> None:
        self._name = path.name
        self._session = make_session(with_durations(path), config)
        self._names = signature_of(self._session, path.name)

    @property
    def active_provider(self) -> str:
        return str(self._session.get_providers()[0])

    @property
    def details(self) -> Mapping[str, str]:
        return {}

    def predicts(self, voice: Voice) -> str | None:
        return "this variant runs as one graph"

    def decode(
        self,
        token_ids: Sequence[int],
        style: npt.NDArray[np.float32],
        speed: float,
        *,
        predicted: bool = False,
        urgent: bool = True,
    ) -> Decoded:
        ids = np.array([[PAD_ID, *token_ids, PAD_ID]], dtype=np.int64)
        feed = {
            self._names.tokens: ids,
            self._names.style: style,
            self._names.speed: np.array([speed], np.float32),
        }
        audio, durations = self._session.run([self._names.audio, DURATIONS], feed)
        samples = np.ascontiguousarray(audio, dtype=np.float32).reshape(-1)
        blocks = _finite(iter((samples,)), f"{self._name}, {len(token_ids)} token ids")
        return Decoded(frames_of(durations), blocks)


class Staged:
    """The model cut into stages: the vocoder whole, or in windows as they are listened to.

    Parameters
    ----------
    config : EngineConfig
        Its variant must be one of `STAGED`.
    predictor : StatisticsPredictor, optional
        None takes the one that the package ships.
    say : callable, optional
        Told in a line what is being built.
    folder : Path, optional
        Graphs made by other recipes than the variant's own.

    Attributes
    ----------
    prosody : ProsodyModel
    vocoder : Vocoder
    """

    def __init__(
        self,
        config: EngineConfig,
        predictor: StatisticsPredictor | None = None,
        say: Callable[[str], None] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._native = native_operators(config, say)
        folder = folder or stages_folder(config, self._native, say)
        self.prosody = ProsodyModel(folder, config, self._native)
        self.vocoder = Vocoder(folder, config, self._native)
        self._predictor = predictor or StatisticsPredictor.load()

    @property
    def active_provider(self) -> str:
        return self.vocoder.active_provider

    @property
    def details(self) -> Mapping[str, str]:
        return {"native_operators": str(self._native)}

    def predicts(self, voice: Voice) -> str | None:
        return self._predictor.doubts(voice.parts)

    def decode(
        self,
        token_ids: Sequence[int],
        style: npt.NDArray[np.float32],
        speed: float,
        *,
        predicted: bool = False,
        urgent: bool = True,
    ) -> Decoded:
        prosody = self.prosody.predict(token_ids, style, speed)
        what = f"{len(token_ids)} token ids"
        if not predicted:
            return Decoded(prosody.durations, _finite(iter((self.vocoder.whole(prosody),)), what))
        return Decoded(prosody.durations, _finite(self.windows(prosody, urgent=urgent), what))

    def windows(self, prosody: Prosody, *, urgent: bool = True) -> Iterator[Samples]:
        """Samples window by window with predicted statistics, each window decoded when it is asked for."""
        mean, variance = self._predictor.predict(prosody)
        scale, shift = self.vocoder.layers.scale_and_shift(mean, variance, prosody.style)
        sizes = Windows() if urgent else Windows(first=LATER_WINDOW_FRAMES)
        return self.vocoder.windows(prosody, scale, shift, sizes, audible=prosody.audible)


def _finite(blocks: Iterator[Samples], what: str) -> Iterator[Samples]:
    for block in blocks:
        require_finite(block, what)
        yield block
