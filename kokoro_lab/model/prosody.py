"""The stages before the vocoder: durations, pitch and energy of a segment, then trunk and excitation.

The *trunk* computes 512 features for each frame of 12.5 ms; the *excitation* is the source signal of the
voice. The vocoder makes samples from both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kokoro_lab.datatypes import Fallback
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.graphs import signatures
from kokoro_lab.graphs.signatures import STOP, TOLD, TOLD_MEAN, TOLD_VARIANCE, whole_trunk
from kokoro_lab.model.delivery import ProsodyChanges, moved_semitones
from kokoro_lab.model.pauses import paused
from kokoro_lab.native.operators import Native
from kokoro_lab.scheduling.priority import prepare
from kokoro_lab.sessions.guarded_session import GuardedSession
from kokoro_lab.sessions.providers import stage_session

Values = npt.NDArray[np.float32]


SPEECH_ENERGY, TAIL_ENERGY = -4.0, -6.0
"""The model's energy curve is near -9 in silence and above 0 in speech. With 54 voices at speeds of 0.65 to
1.55, sound over -54 dBFS began between 2 frames before and 5 frames after the curve first passed -4. At
speeds of 0.7 to 1.5, it ended no later than the curve last passed -6."""
ONSET_MARGIN_FRAMES, TAIL_MARGIN_FRAMES = 4, 8
SPEAKING_ENERGY, FIRST_CHUNK_FRAMES = 2.0, 3
"""A stream's first chunk holds 30 ms of softer sound and then 20 ms of speech. In 96.5 % of 1,600 first
segments (54 voices, speeds 0.65 to 1.55), that much had sounded 3 trunk frames after the energy first passed
2."""
TRUNK_REACH_FRAMES = 10
"""Frames of 25 ms for which the trunk is computed beyond the needed ones: the reach of its convolutions."""


@dataclass(frozen=True, slots=True, eq=False)
class Prosody:
    """How a segment will be spoken: everything that the vocoder needs except the statistics.

    Parameters
    ----------
    durations : numpy.ndarray
        int64, one for each input id, pads included, in frames of 25 ms.
    f0_hz, energy : numpy.ndarray
        float32 (2T,), one value every 12.5 ms; F0 is near 0 where the speech is unvoiced.
    trunk : numpy.ndarray
        float32 (1, 512, 2T).
    excitation : numpy.ndarray
        float32 (1, 300 · 2T + 20): the excitation's samples, padded for its STFT.
    style : numpy.ndarray
        float32 (1, 256).
    """

    durations: npt.NDArray[np.int64]
    f0_hz: Values
    energy: Values
    trunk: Values
    excitation: Values
    style: Values

    @property
    def frames(self) -> int:
        """Trunk frames of 12.5 ms."""
        return int(self.trunk.shape[2])

    @property
    def audible(self) -> tuple[int, int]:
        """The first audible trunk frame, and the one after the last; all frames outside are silent."""
        return audible_frames(self.energy)


def audible_frames(energy: Values) -> tuple[int, int]:
    """`Prosody.audible` for an energy curve, float32 (2T,)."""
    loud = np.flatnonzero(energy > SPEECH_ENERGY)
    if not len(loud):
        return 0, len(energy)
    last = int(np.flatnonzero(energy > TAIL_ENERGY)[-1])
    return max(0, int(loud[0]) - ONSET_MARGIN_FRAMES), min(len(energy), last + 1 + TAIL_MARGIN_FRAMES)


def first_chunk_frame(energy: Values) -> int | None:
    """The trunk frame by which a stream's first chunk is likely to be complete, by the energy curve.

    None if the curve never shows speech. A wrong answer only delays the first sound by a window.
    """
    speaking = np.flatnonzero(energy > SPEAKING_ENERGY)
    return int(speaking[0]) + FIRST_CHUNK_FRAMES if len(speaking) else None


class Contours(NamedTuple):
    """Durations, pitch and energy of a segment: the features whose changes a listener notices first.

    `aligned` is float32 (1, 512, T), the text's features stretched to frames of 25 ms; `f0_hz` and `energy`
    are float32 (1, 2T); `durations` is float32, one for each input id. If the text asks for another rate or
    pitch (SSML), `fallbacks` name what could not be done, and `moved_semitones` is the mean distance of the
    pitch from the model's own. `plain_frames` is the length of the segment at speed 1, in duration frames of
    25 ms.
    """

    aligned: Values
    f0_hz: Values
    energy: Values
    durations: Values
    fallbacks: tuple[Fallback, ...] = ()
    moved_semitones: float = 0.0
    plain_frames: int | None = None


class ProsodyModel:
    """Runs the stages before the vocoder on whole segments, so that phrasing is never cut.

    The excitation needs only the pitch, and about one core; so it is computed in a thread beside the trunk,
    which leaves cores idle. In parallel, they take 0.9 (fp32) or 0.75 (int8) of the time that they take one
    after the other (50 token ids, two cores). The samples are the same.
    """

    def __init__(self, folder: Path, config: EngineConfig, native: Native) -> None:
        self._prosody, self._trunk, self._excitation = (
            stage_session(stage, str(signatures.graph_path(folder, stage)), config, library=native.library)
            for stage in ("prosody", "trunk", "excitation")
        )
        self._pauses = config.pauses
        self._beside: Executor | None = None
        if config.thread_count > 1:
            self._beside = ThreadPoolExecutor(
                config.thread_count, "excitation", initializer=partial(prepare, config)
            )

    def in_turn(self) -> ProsodyModel:
        """This model, with its stages run one after the other, so that each can be timed or disturbed by
        itself."""
        found = copy(self)
        found._beside = None
        return found

    @property
    def sessions(self) -> tuple[GuardedSession, ...]:
        """The sessions of the stages, in the order of the pipeline."""
        return self._prosody, self._trunk, self._excitation

    def predict(
        self, token_ids: Sequence[int], style: Values, speed: float, delivery: ProsodyChanges | None = None
    ) -> Prosody:
        """Prosody of a segment of 1 to 510 token ids, without pads, with a style vector (1, 256)."""
        return self.behind(self.contours(token_ids, style, speed, delivery), style)

    def contours(
        self, token_ids: Sequence[int], style: Values, speed: float, delivery: ProsodyChanges | None = None
    ) -> Contours:
        """The first step of `predict`: durations, pitch and energy, with pauses adjusted."""
        return paused(self._delivered(token_ids, style, speed, delivery), token_ids, self._pauses)

    def _delivered(
        self, token_ids: Sequence[int], style: Values, speed: float, delivery: ProsodyChanges | None
    ) -> Contours:
        """The contours with the prosody changes, and pauses as the model makes them."""
        found, unrounded = self._found(token_ids, style, np.array([speed], np.float32))
        found = found._replace(plain_frames=int(signatures.frames_of(unrounded).sum()))
        if delivery is None:
            return found
        if delivery.changes_rate:
            # The speed of each id that gives it the wanted number of frames
            durations = delivery.durations(unrounded, speed)
            divisors = np.divide(unrounded.reshape(-1), durations, dtype=np.float32)
            found, _ = self._found(token_ids, style, divisors)
        f0_hz = delivery.pitched(found.f0_hz, signatures.frames_of(found.durations))
        return found._replace(
            f0_hz=f0_hz,
            fallbacks=tuple(delivery.fallbacks(speed, found.f0_hz)),
            moved_semitones=moved_semitones(found.f0_hz, f0_hz),
        )

    def _found(self, token_ids: Sequence[int], style: Values, speeds: Values) -> tuple[Contours, Values]:
        """The contours at one speed or at one for each input id, and the durations before speed and
        rounding."""
        ids = np.array([[PAD_ID, *token_ids, PAD_ID]], dtype=np.int64)
        _, outputs = signatures.STAGES["prosody"]
        feed = {"input_ids": ids, "style": style, "speed": speeds}
        *contours, unrounded = self._prosody.run(outputs, feed)
        return Contours(*contours), unrounded

    def behind(self, contours: Contours, style: Values) -> Prosody:
        """The second step of `predict`: trunk and excitation of the whole segment, from given contours."""
        frames = contours.aligned.shape[2]
        return self._behind(contours, style, frames, whole_trunk(frames))

    def beginning(
        self, contours: Contours, style: Values, frames: int, mean: Values, variance: Values
    ) -> Prosody:
        """The prosody of the segment's beginning: the first `frames` trunk frames that `behind` would return,
        and after them a few frames that are wrong.

        Parameters
        ----------
        mean, variance : numpy.ndarray
            float32 (8704,): statistics of the channels inside the trunk, over the whole segment. With exact
            ones, the frames equal those of `behind` up to rounding.
        """
        stop = min(-(-frames // 2) + TRUNK_REACH_FRAMES, contours.aligned.shape[2])
        told = {TOLD: np.array(True), TOLD_MEAN: mean, TOLD_VARIANCE: variance, STOP: np.array([stop])}
        return self._behind(contours, style, stop, told)

    def _behind(
        self, contours: Contours, style: Values, stop: int, how: Mapping[str, npt.NDArray[Any]]
    ) -> Prosody:
        """Trunk and excitation of the first `stop` duration frames (25 ms)."""
        f0_hz = contours.f0_hz[:, : 2 * stop]
        excite = partial(
            self._excitation.run, [signatures.EXCITATION], {signatures.F0_CURVE: f0_hz[:, np.newaxis]}
        )
        beside = None if self._beside is None else self._beside.submit(excite)
        (trunk,) = self._trunk.run(
            [signatures.TRUNK],
            {
                signatures.ALIGNED: contours.aligned,
                signatures.F0: contours.f0_hz,
                signatures.ENERGY: contours.energy,
                signatures.DECODER_STYLE: style[:, :128],
                **how,
            },
        )
        (excitation,) = excite() if beside is None else beside.result()
        return Prosody(
            durations=signatures.frames_of(contours.durations),
            f0_hz=f0_hz.reshape(-1),
            energy=contours.energy.reshape(-1)[: 2 * stop],
            trunk=trunk,
            excitation=excitation,
            style=style,
        )
