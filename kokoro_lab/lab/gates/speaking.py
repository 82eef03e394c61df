"""Has two engines speak the same texts for a gate, and pairs their samples, before gain and limiter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples, WordTiming
from kokoro_lab.errors import ParameterError
from kokoro_lab.graphs.signatures import frames_of
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.clips import JudgedClip, Sound
from kokoro_lab.lab.fixtures import FixtureText, read_by
from kokoro_lab.lab.gates.damages import Damage, longest_word
from kokoro_lab.lab.listening.plan import PassagePair
from kokoro_lab.lab.tuning.comparison import heard_part
from kokoro_lab.model.decoder import SegmentRequest, StagedDecoder
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.timeline import word_timings
from kokoro_lab.text.language import resolve_language
from kokoro_lab.weights.voices import LANGUAGE_OF_PREFIX


class ModelSpeech(NamedTuple):
    """A text by a voice: the vocoder's samples at 24 kHz, when each word is heard, and what was said."""

    text: str
    voice: str
    samples: Samples
    words: Sequence[WordTiming]
    said: str


class SpokenPair(NamedTuple):
    """One text by one voice, spoken by the reference and by the candidate.

    `text` is the name of the text and `said` its words. `longest_word` is the range of samples in which the
    reference speaks its longest word. `words` holds two lists of word timings: the reference's, then the
    candidate's.
    """

    text: str
    voice: str
    pair: PassagePair
    said: str
    longest_word: slice
    words: tuple[Sequence[WordTiming], Sequence[WordTiming]] = ((), ())

    def judged(
        self,
        name: str,
        measured: Mapping[str, float],
        badness: float,
        level: Callable[[PassagePair], PassagePair] = lambda pair: pair,
    ) -> JudgedClip:
        """The pair as a judged clip: both sides with their words, at the loudness that `level` gives them."""
        reference, candidate = self.words
        pair = cache(partial(level, self.pair))
        return JudgedClip(
            name,
            self.said,
            self.voice,
            LANGUAGE_OF_PREFIX[self.voice[0]],
            measured,
            badness,
            lambda: Sound(pair().candidate, candidate),
            lambda: Sound(pair().reference, reference),
        )

    def damaged(self, damage: Damage) -> SpokenPair:
        """The pair with the damaged reference as its candidate."""
        return self._replace(pair=replace(self.pair, candidate=damage(self.pair.reference)))


class ProsodyReading(NamedTuple):
    """A model's prosody of a text: duration frames of each input id, and F0 with two values a frame."""

    frames: npt.NDArray[np.int64]
    f0_hz: npt.NDArray[np.float32]


def speak(
    engine: Engine, texts: Sequence[FixtureText], voices: Sequence[str], *, streamed: bool = False
) -> list[ModelSpeech]:
    """Speak every text with every voice, or with its own `reader`, if it has one. The samples are the
    vocoder's, without gain and limiter.

    With `streamed`, segments are decoded in windows with predicted statistics, as for streams.

    Raises
    ------
    ParameterError
        `streamed` is True, and the variant or a voice cannot be streamed.
    """
    bar = tqdm(read_by(texts, voices), desc=f"spoken by {engine.config.variant}")
    return [_speak(engine, text, voice, streamed) for text, voice in bar]


def pair_up(reference: Sequence[ModelSpeech], candidate: Sequence[ModelSpeech]) -> list[SpokenPair]:
    """Pair the clips of both engines by text and voice, without the silence at their ends.

    Two clips of one length are cut at the same samples, so that they stay aligned.
    """
    pairs = []
    for first, second in zip(reference, candidate, strict=True):
        inside = heard_part(first.samples)
        other = inside if len(first.samples) == len(second.samples) else heard_part(second.samples)
        name = f"{first.text}, {first.voice}"
        pair = PassagePair(name, first.samples[inside], second.samples[other], SAMPLE_RATE_HZ)
        longest = longest_word(first.words)
        longest = slice(max(longest.start - inside.start, 0), longest.stop - inside.start)
        words = (_shifted(first.words, inside), _shifted(second.words, other))
        pairs.append(SpokenPair(first.text, first.voice, pair, first.said, longest, words))
    return pairs


def _shifted(words: Sequence[WordTiming], inside: slice) -> list[WordTiming]:
    """The words inside the samples `inside`, with times from its start."""
    start_s, length_s = inside.start / SAMPLE_RATE_HZ, (inside.stop - inside.start) / SAMPLE_RATE_HZ
    return [
        replace(
            word,
            start_s=min(max(word.start_s - start_s, 0.0), length_s),
            end_s=min(max(word.end_s - start_s, 0.0), length_s),
        )
        for word in words
    ]


def read(engine: Engine, text: FixtureText, voice_name: str) -> ProsodyReading:
    """Durations and F0 that the engine's variant predicts for a text, one segment after the other.

    Raises
    ------
    ParameterError
        The variant runs as one graph, from which durations and F0 cannot be read.
    """
    if not isinstance(engine.decoder, StagedDecoder):
        raise ParameterError(
            f"{engine.config.variant} runs as one graph, which does not give its F0.",
            field="variant",
            value=engine.config.variant,
            mend="Take a variant that is made of stages.",
        )
    voice = engine.voice(voice_name)
    contours = [
        engine.decoder.prosody.contours(segment.token_ids, voice.style(len(segment.token_ids)), 1.0)
        for segment in engine.front_end.segments(text.text, resolve_language(voice.language), lambda _: None)
    ]
    return ProsodyReading(
        np.concatenate([frames_of(each.durations) for each in contours]),
        np.concatenate([each.f0_hz.reshape(-1) for each in contours]),
    )


def shortest(spoken: Iterable[SpokenPair], count: int) -> list[SpokenPair]:
    """The `count` shortest pairs, each of a different text. Controls put faults into these."""
    longest_first = sorted(spoken, key=lambda each: -len(each.pair.reference))
    a_text = {each.text: each for each in longest_first}  # the last one of each text stays
    return sorted(a_text.values(), key=lambda each: len(each.pair.reference))[:count]


def begun(each: SpokenPair, length_s: float) -> SpokenPair:
    """The pair, cut to its first `length_s` seconds."""
    pair, stop = each.pair, round(length_s * each.pair.sample_rate_hz)
    return each._replace(pair=replace(pair, reference=pair.reference[:stop], candidate=pair.candidate[:stop]))


def _speak(engine: Engine, text: FixtureText, voice_name: str, streamed: bool) -> ModelSpeech:
    """The vocoder's samples of a text, its segments end to end, and when each word is heard."""
    voice = engine.voice(voice_name)
    refusal = engine.decoder.predicts(voice) if streamed else None
    if refusal:
        raise ParameterError(
            f"{engine.config.variant} cannot stream {voice_name}: {refusal}.",
            field="streamed",
            value=streamed,
        )
    blocks: list[Samples] = []
    words: list[WordTiming] = []
    for segment in engine.front_end.segments(text.text, resolve_language(voice.language), lambda _: None):
        style = voice.style(len(segment.token_ids))
        decoded = engine.decoder.decode(SegmentRequest(segment.token_ids, style, predicted=streamed))
        start = sum(map(len, blocks))
        blocks += decoded.blocks
        words += word_timings(segment, decoded.durations, start, range(start, sum(map(len, blocks))))
    said = engine.front_end.describe(text.text, voice.language)["normalized"]
    return ModelSpeech(text.id, voice_name, np.concatenate(blocks), words, said)
