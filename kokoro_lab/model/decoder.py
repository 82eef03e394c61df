"""From token ids to samples: the protocol `Decoder`, and the decoders that implement it.

The model has four stages: *prosody* (durations, pitch and energy of a segment), *trunk* (512 features for
each frame of 12.5 ms), *excitation* (the source signal of the voice) and *vocoder* (samples). The
*statistics* are the mean and the variance by which the vocoder normalises each channel over a segment: the
exact ones are known only once the whole segment is computed, predicted ones earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from kokoro_lab.config import SPEED_MAX, SPEED_MIN, STAGED
from kokoro_lab.datatypes import Fallback, ProviderChoice, Samples
from kokoro_lab.dsp.block import CHECK_FILES, require_finite
from kokoro_lab.engine_config import STAGE_NAMES, WHOLE_MODEL, EngineConfig
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.graphs.signatures import DURATIONS, TOLD_CHANNELS, frames_of
from kokoro_lab.graphs.signatures import signature as signature_of
from kokoro_lab.model.delivery import ProsodyChanges
from kokoro_lab.model.predictor import StatisticsPredictor
from kokoro_lab.model.prosody import Contours, ProsodyModel, Values
from kokoro_lab.model.vocoder import Around, Vocoder
from kokoro_lab.model.windowed_speech import EARLY_PREDICTOR_FILE, WindowedSpeech
from kokoro_lab.native.operators import native_operators
from kokoro_lab.native.toolchain import conversion_of
from kokoro_lab.sessions.guarded_session import Placement
from kokoro_lab.sessions.provider_registry import choose
from kokoro_lab.sessions.providers import stage_session
from kokoro_lab.weights.voices import Voice

if TYPE_CHECKING:
    from kokoro_lab.model.static_vocoder import StaticVocoder

WANTS_FIXED_SHAPES = "coreml"
"""The provider that runs hardly a node of a graph for windows of any length (see the notebook
10_provider_ab)."""
PREDICTED_SEMITONES = 2.5
"""The most by which the pitch may be moved on average with predicted statistics. Sentences of two voices were
compared with the same sentences with exact statistics. PESQ was 4.5 without a change of pitch, 4.3 to 4.5 at
2.8 semitones, 4.0 to 4.1 at 3.4, and 3.0 at 9."""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentRequest:
    """The input of a decoder: one segment, and how it is to be spoken.

    Parameters
    ----------
    token_ids : sequence of int
        1 to 510, without pads.
    style : numpy.ndarray
        The style vector, float32 (1, 256).
    speed : float
        Speed at which the model speaks, above 0.
    predicted : bool
        Whether to normalise with predicted statistics: then the first block comes early. With exact
        statistics, the samples are those of the published model.
    urgent : bool
        Whether somebody waits for the first block: then it is made as small as possible.
    delivery : ProsodyChanges, optional
        Rates, pitches and gains of single token ids.
    """

    token_ids: Sequence[int]
    style: Values
    speed: float = 1.0
    predicted: bool = False
    urgent: bool = True
    delivery: ProsodyChanges | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DecodedSegment:
    """One segment on its way out of the model.

    Parameters
    ----------
    durations : numpy.ndarray
        int64, one per input id with both pads, in frames of 600 samples (25 ms).
    blocks : iterator of numpy.ndarray
        float32 mono at 24 kHz, in order, each checked to be finite and made when it is asked for;
        together `600 * durations.sum()` samples.
    fallbacks : tuple of Fallback
        Requests that were not followed, and why; without places in the text.
    later : callable, optional
        Takes a sample's number in the segment and returns where the last block at or before it begins, and
        the blocks from there on, equal to those in `blocks`. None if the segment is one block.
    choice : ProviderChoice, optional
        The provider that was chosen for this segment, where there are several.
    plain_frames : int, optional
        Length at speed 1 in frames of 25 ms; None if it is not known, or if words have rates of their own.
    energy : float, optional
        How loudly the model will speak the segment, known before it is decoded: log(mean(exp(energy curve))).
        None if this energy is not known.
    """

    durations: npt.NDArray[np.int64]
    blocks: Iterator[Samples]
    fallbacks: tuple[Fallback, ...] = ()
    later: Callable[[int], tuple[int, Iterator[Samples]]] | None = None
    choice: ProviderChoice | None = None
    plain_frames: int | None = None
    energy: float | None = None


class Decoder(Protocol):
    """Speaks one segment at a time. Safe to call from several threads."""

    @property
    def details(self) -> Mapping[str, str]:
        """Further facts about this decoder that a result should record."""

    def predicts(self, voice: Voice) -> str | None:
        """Why this decoder cannot decode `voice` with predicted statistics; None if it can."""

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        """Speak a segment. The gains of its `delivery` are not applied here.

        Raises
        ------
        SynthesisError
            The model gave samples that are not finite.
        """


def fixed_windows(config: EngineConfig, say: Callable[[str], None] | None = None) -> StaticVocoder | None:
    """If the configuration asks for windows of fixed sizes: the vocoder that decodes them, whose graphs are
    made if they are missing; else None.

    Raises
    ------
    WeightsError
        The fp32 weights are missing.
    ProviderError
        The provider that was asked for is not available, or takes no node of the windows' graphs.
    """
    wanted = config.fixed_windows == "on"
    if config.fixed_windows == "auto" and config.variant in STAGED and config.accelerates("vocoder"):
        wanted = choose(config).provider.name == WANTS_FIXED_SHAPES
    if not wanted:
        return None
    from kokoro_lab.model.static_vocoder import StaticVocoder, static_folder

    return StaticVocoder(static_folder(config, say), config)


class StagedDecoder:
    """Runs the model in stages. The vocoder decodes a segment at once or, for a listener, in windows.

    Parameters
    ----------
    config : EngineConfig
        Its variant must be one of `STAGED`.
    predictor, early : StatisticsPredictor, optional
        The predictors of a segment's statistics: one for the whole segment, one for its early windows (see
        `speak_early`). None takes those that the package ships.
    say : callable, optional
        Called with a line about what is being built.
    folder : Path, optional
        Folder with graphs made by other recipes than the variant's own.

    Attributes
    ----------
    prosody : ProsodyModel
    vocoder : Vocoder
    fixed : StaticVocoder or None
        Decodes the windows of a stream in place of `vocoder`, where an accelerator needs fixed sizes.
    conversion : mapping
        How the graphs were made; see `toolchain.conversion_of`.
    """

    def __init__(
        self,
        config: EngineConfig,
        predictor: StatisticsPredictor | None = None,
        early: StatisticsPredictor | None = None,
        say: Callable[[str], None] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._config = config
        self._native = native_operators(config, say)
        folder = folder or stages_folder(config, self._native, say)
        self.conversion = conversion_of(folder)
        with ThreadPoolExecutor(1, "predictors") as beside:  # as slow as loading the smaller graphs
            predictors = beside.submit(_predictors, predictor, early)
            self.prosody = ProsodyModel(folder, config, self._native)
            self._next_prosody = self.prosody
            if config.next_threads:
                self._next_prosody = ProsodyModel(
                    folder, replace(config, threads=config.next_threads), self._native
                )
            self.fixed = fixed_windows(config, say)
            any_length = config if self.fixed is None else _without_windows(config)
            self.vocoder = Vocoder(folder, any_length, self._native)
            self._in_floats = predictors.result()
        known, early_known = self._in_floats
        self._predictor = known.of_variant(config.variant)
        self._early = early_known.of_variant(config.variant, TOLD_CHANNELS)

    @property
    def windowed(self) -> WindowedSpeech:
        """The part that speaks the windows of a stream."""
        if self.fixed is None:
            return self._of_any_length
        # Fixed windows compute in float: the shifts of an 8-bit variant's statistics are not applied
        return WindowedSpeech(self._config, self.fixed, *self._in_floats)

    @property
    def _of_any_length(self) -> WindowedSpeech:
        return WindowedSpeech(self._config, self.vocoder, self._predictor, self._early)

    @property
    def placement(self) -> Placement:
        """Where each stage runs at this moment."""
        vocoder = self.vocoder.sessions
        if self.fixed is not None:  # fixed windows replace the first session, that of windows of any length
            vocoder = (*vocoder[1:], *self.fixed.sessions)
        sessions = (*self._next_prosody.sessions, *self.prosody.sessions, *vocoder)
        return Placement.of(self._config.provider, dict.fromkeys(sessions))  # both prosodies may share some

    @property
    def details(self) -> Mapping[str, str]:
        found = {
            "native_operators": str(self._native),
            "native_build": self._native.build or "none",
            "stage_providers": str(self.placement),
            "windows": "of any length" if self.fixed is None else "of fixed sizes, in floats",
        }
        if self._config.next_threads:
            found["next_threads"] = str(self._config.next_threads)
        return found

    def through(self, around: Around) -> StagedDecoder:
        """A decoder with these stages and with other sessions for the vocoder's windows: `around` makes each
        of these sessions from the present one."""
        found = copy(self)
        found.vocoder = self.vocoder.through(around)
        found.fixed = None if self.fixed is None else self.fixed.through(around)
        return found

    def in_turn(self) -> StagedDecoder:
        """A decoder with these stages that never runs two of them at once for a segment, so that each can be
        timed."""
        found = copy(self)
        found.prosody = found._next_prosody = self.prosody.in_turn()
        if self._next_prosody is not self.prosody:
            found._next_prosody = self._next_prosody.in_turn()
        return found

    def predicts(self, voice: Voice) -> str | None:
        return self._predictor.doubts(voice.parts)

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        # By the request, never by the clock: another number of threads adds up in another order
        model = self.prosody if asked.urgent else self._next_prosody
        style, predicted = asked.style, asked.predicted
        contours = model.contours(asked.token_ids, style, asked.speed, asked.delivery)
        durations = frames_of(contours.durations)
        energy = float(np.log(np.exp(contours.energy).mean()))
        found = partial(DecodedSegment, durations, plain_frames=contours.plain_frames, energy=energy)
        what = f"{len(asked.token_ids)} token ids"
        fallbacks = contours.fallbacks
        if predicted and contours.moved_semitones > PREDICTED_SEMITONES:
            predicted = False
            moved = f"the pitch is moved by {contours.moved_semitones:.1f} semitones on average"
            fallbacks += (Fallback("statistics", f"exact instead of predicted: {moved}"),)
        if not predicted:
            whole = iter((self.vocoder.whole(model.behind(contours, style)),))
            return found(blocks=finite(whole, what), fallbacks=fallbacks)
        plan = self.windowed.plan(contours.energy, urgent=asked.urgent)
        blocks_from = self.windowed.blocks(model, contours, style, plan)

        def later(sample: int) -> tuple[int, Iterator[Samples]]:
            start, blocks = blocks_from(sample)
            return start, finite(blocks, what)

        return found(blocks=later(0)[1], fallbacks=fallbacks, later=later)

    def windows(self, contours: Contours, style: Values, *, urgent: bool = True) -> Iterator[Samples]:
        """Samples window by window with predicted statistics, each window decoded when it is asked for."""
        plan = self.windowed.plan(contours.energy, urgent=urgent)
        return self.windowed.blocks(self.prosody, contours, style, plan)(0)[1]

    def undivided(self, contours: Contours, style: Values, *, urgent: bool = True) -> Samples:
        """The segment as one window, decoded with the predicted statistics that its windows have. It shows
        what dividing a segment into windows changes."""
        plan = self._of_any_length.plan(contours.energy, urgent=urgent)
        return self._of_any_length.undivided(self.prosody, contours, style, plan)


def _predictors(
    predictor: StatisticsPredictor | None, early: StatisticsPredictor | None
) -> tuple[StatisticsPredictor, StatisticsPredictor]:
    """The given predictors, else those that ship."""
    return (
        predictor or StatisticsPredictor.load(),
        early or StatisticsPredictor.load(EARLY_PREDICTOR_FILE),
    )


def _without_windows(config: EngineConfig) -> EngineConfig:
    """The configuration of a second vocoder beside one with windows of fixed sizes. The second one runs on
    the CPU, with windows of any length; all other stages keep their providers."""
    others = [stage for stage in STAGE_NAMES if stage != "vocoder" and config.accelerates(stage)]
    return replace(config, placement=",".join(others)) if others else replace(config, provider="cpu")


def finite(blocks: Iterator[Samples], what: str, mend: str = CHECK_FILES) -> Iterator[Samples]:
    """Pass `blocks` on, and check that each is finite. In an error, `what` names the segment and `mend` says
    what to do."""
    for block in blocks:
        require_finite(block, what, mend)
        yield block


UPSTREAM_FP16 = "Upstream's fp16 model does this on some CPUs: try the variant fp32."


class WholeGraph:
    """A decoder that runs an export as it was published, once for each segment.

    Parameters
    ----------
    path : Path
        A Kokoro export. Exports differ in the names of their inputs; see `graphs.signatures.signature`.
    """

    def __init__(self, path: Path, config: EngineConfig) -> None:
        from kokoro_lab.graphs.cutting import with_durations

        self._name = path.name
        self._requested_provider = config.provider
        self._session = stage_session(WHOLE_MODEL, with_durations(path), config)
        self._names = signature_of(self._session, path.name)

    @property
    def placement(self) -> Placement:
        """The provider on which the model runs at this moment."""
        return Placement.of(self._requested_provider, (self._session,))

    @property
    def details(self) -> Mapping[str, str]:
        return {"stage_providers": str(self.placement)}

    def predicts(self, voice: Voice) -> str | None:
        return "this variant runs as one graph"

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        token_ids, speed, delivery = asked.token_ids, asked.speed, asked.delivery
        fallbacks = () if delivery is None else tuple(_not_by_word(delivery, speed))
        if delivery is not None:
            speed = delivery.kept(speed * (delivery.one_rate or 1.0))
        ids = np.array([[PAD_ID, *token_ids, PAD_ID]], dtype=np.int64)
        feed = {
            self._names.tokens: ids,
            self._names.style: asked.style,
            self._names.speed: np.array([speed], np.float32),
        }
        audio, durations = self._session.run([self._names.audio, DURATIONS], feed)
        samples = np.ascontiguousarray(audio, dtype=np.float32).reshape(-1)
        mend = UPSTREAM_FP16 if "fp16" in self._name else CHECK_FILES
        blocks = finite(iter((samples,)), f"{self._name}, {len(token_ids)} token ids", mend)
        return DecodedSegment(frames_of(durations), blocks, fallbacks)


def _not_by_word(delivery: ProsodyChanges, speed: float) -> Iterator[Fallback]:
    """Report styles of single words, which an export that runs as a whole cannot follow."""
    whole = "this variant runs as one graph"
    if delivery.one_rate is None:
        yield Fallback("prosody", f"rates of single words are not followed: {whole}")
    if delivery.changes_pitch:
        yield Fallback("prosody", f"pitch is not followed: {whole}")
    asked = speed / delivery.stretch * (delivery.one_rate or 1.0)
    if not SPEED_MIN <= asked <= SPEED_MAX:
        yield Fallback("prosody", f"a speed of {asked:.2f}: kept within {SPEED_MIN:g} to {SPEED_MAX:g}")
