"""The data of the pipeline, frozen dataclasses: utterance → segment → chunk → clip, and the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kokoro_lab.extras import imported

Samples = npt.NDArray[np.float32]

SAMPLE_RATE_HZ = 24_000
"""Kokoro's own rate; everything inside is float32 mono at this rate."""


@dataclass(frozen=True, slots=True)
class LexiconEntry:
    """How a written word or name is said.

    Parameters
    ----------
    lang : str
        A language (`en`), one accent of it (`en-gb`), or `*` for any.
    grapheme : str
        The written form. It may contain spaces and marks.
    phoneme : str
        Symbols of the vocabulary, stress included.
    flags : tuple of str
        `case`: the capitals must be those of `grapheme`; else any will do. `plural`: the word is also found
        with a plural -s.
    """

    lang: str
    grapheme: str
    phoneme: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Utterance:
    """A request: one text and how to speak it.

    Parameters
    ----------
    text : str
        The text as the user gave it. All offsets in words and timings point into it.
    voice : str
        A voice name (`af_heart`), an OpenAI voice name (`alloy`) or a blend (`af_bella(2)+af_sky(1)`).
    speed : float
        0.25 to 4.0; above 1 is faster. Beyond 0.7 to 1.5 the model's speech is stretched at its pitch.
    language : str, optional
        BCP 47 tag such as `en-us`; None takes the language of the voice.
    input_format : {"text", "ssml", "markdown", "marked"}
        What `text` is: plain, a document of the SSML subset of `kokoro_lab.text.ssml`, Markdown, or plain
        with inline marks (`kokoro_lab.text.ssml.inline`).
    code : {"skip", "name", "read"}
        What is said of a block of code in Markdown: nothing, what language it is in, or all of it. Parts that
        are left out are among the fallbacks.
    emoji : {"name", "skip"}
        Whether the names of emoji are said.
    loudness : {"auto", "measured", "voice", "none"}
        How the gain to the target loudness is found. `measured` reads the whole clip, `voice` uses the
        voice's own average and needs no look-ahead, `none` leaves speech as loud as the model makes it.
        `auto` is `voice` for a stream and `measured` for a file.
    statistics : {"auto", "predicted", "exact"}
        The statistics with which the vocoder normalises. `predicted` statistics are known before it runs, so
        that the first sound comes early and memory does not grow; `exact` ones are the utterance's own, as in
        the published model. `auto` is `predicted` for a stream and `exact` for a file.
    seed : int
        Seeds the dither, the only random thing between text and PCM.
    lexicon : tuple of LexiconEntry
        Entries that come before all other lexicons. The engine takes a mapping from graphemes to phonemes and
        a list of mappings as well.
    detect_languages : {"auto", "scripts", "off"}
        How words of other languages are found, which are then read in their own language: `auto` finds them
        by their script, and also among Latin words; `scripts` only by their script; `off` reads everything in
        `language`.
    """

    text: str
    voice: str = "af_heart"
    speed: float = 1.0
    language: str | None = None
    input_format: str = "text"
    code: str = "skip"
    emoji: str = "name"
    loudness: str = "auto"
    statistics: str = "auto"
    seed: int = 0
    lexicon: tuple[LexiconEntry, ...] = ()
    detect_languages: str = "auto"


def has_sound(phonemes: str) -> bool:
    """Whether any of the symbols is a sound, and not a mark, a stress or a space."""
    return any(symbol.isalpha() for symbol in phonemes)


@dataclass(frozen=True, slots=True)
class Word:
    """One spoken word or mark, with its place in the original text.

    `start` and `end` are character offsets into the original text; `source` says which level of the G2P spoke
    it: `lexicon`, `misaki`, `espeak` or `characters`. `space_after` is whether a space follows in the phoneme
    string.
    """

    text: str
    start: int
    end: int
    phonemes: str
    language: str
    source: str
    space_after: bool = True

    @property
    def is_mark(self) -> bool:
        """Whether this is a mark without a sound of its own, such as a comma. A mark is heard as a pause, or
        not at all."""
        return not has_sound(self.phonemes)


@dataclass(frozen=True, slots=True)
class SpeakingStyle:
    """How words are spoken, if not in the voice's own way.

    Parameters
    ----------
    rate : float
        Factor of the speed.
    pitch_scale, pitch_offset_hz : float
        A pitch of f becomes `pitch_scale * f + pitch_offset_hz`.
    pitch_base_hz : float, optional
        The average pitch in Hz to which the voice is brought before `pitch_scale` and `pitch_offset_hz`
        apply.
    gain_db : float
        How much louder the words are than the voice's other words, in dB.
    """

    rate: float = 1.0
    pitch_scale: float = 1.0
    pitch_offset_hz: float = 0.0
    pitch_base_hz: float | None = None
    gain_db: float = 0.0

    def around(self, inner: SpeakingStyle) -> SpeakingStyle:
        """`inner` within this style: rates and pitches multiply, hertz and decibels add up."""
        if inner.pitch_base_hz is None:
            scale = self.pitch_scale * inner.pitch_scale
            offset_hz = self.pitch_offset_hz * inner.pitch_scale + inner.pitch_offset_hz
            base_hz = self.pitch_base_hz
        else:  # an absolute pitch replaces the one around it
            scale, offset_hz = inner.pitch_scale, inner.pitch_offset_hz
            base_hz = inner.pitch_base_hz
        return SpeakingStyle(self.rate * inner.rate, scale, offset_hz, base_hz, self.gain_db + inner.gain_db)


PLAIN = SpeakingStyle()
"""The style in which a voice speaks by itself."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a text that the prosody model reads at once: at most 510 token ids, usually a sentence or a
    few short ones.

    `token_ids` are without the pads; `word_tokens[i]` is the half-open range of ids of `words[i]`.
    `pause_after_s` is the silence to add before the next segment, by the mark that this one ends with.
    `styles`, if there are any, has one for each word; `break_before_s` and `break_after_s` are the silence
    that a document asks for before and after this segment, and replace any other pause. `voice` is the voice
    that a document names for this segment. `sentence` is the number, from 0, of the sentence in the text with
    which this segment begins, or of which it is a part: a resumed stream reads the text from there.
    """

    segment_id: int
    start: int
    end: int
    words: tuple[Word, ...]
    phonemes: str
    token_ids: tuple[int, ...]
    word_tokens: tuple[tuple[int, int], ...]
    pause_after_s: float
    language: str
    styles: tuple[SpeakingStyle, ...] = ()
    break_before_s: float | None = None
    break_after_s: float | None = None
    sentence: int = 0
    voice: str | None = None


@dataclass(frozen=True, slots=True)
class WordTiming:
    """When a word is heard: seconds from the start of the clip, offsets into the original text.

    Marks have no times: the time of a comma is a pause after its word. A written word that is said as
    several, such as `$100`, has several timings with the same offsets.
    """

    text: str
    start: int
    end: int
    start_s: float
    end_s: float
    phonemes: str
    segment_id: int


@dataclass(frozen=True, slots=True)
class MarkTiming:
    """When a `mark` of SSML is reached: seconds from the start of the clip, its offset in the original text.

    A mark is reached when the next word begins or, if breaks lie between the two, before the breaks.
    """

    name: str
    start: int
    start_s: float
    segment_id: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stream may begin again: at the first sample of a segment.

    All steps after the text (prosody, windows, trim, limiter) start again with each segment, so nothing
    before the segment has to be computed.

    Parameters
    ----------
    sentence : int
        `Segment.sentence` of the segment; reading begins there.
    first_segment_id : int
        Id of the first segment of that sentence.
    segment_id : int
        The segment.
    start_samples : int
        Position of its first sample in the stream.
    lead_samples : int
        Silence that was trimmed from its beginning. With it, a position in the stream gives the model's
        sample that is heard there, and what comes before need not be decoded.
    opens : bool
        Whether it is the first segment that is spoken, which is decoded in smaller windows than others.
    """

    sentence: int = 0
    first_segment_id: int = 0
    segment_id: int = 0
    start_samples: int = 0
    lead_samples: int = 0
    opens: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class AudioChunk:
    """A piece of a stream: float32 mono audio, tagged so that a client can order it.

    Parameters
    ----------
    samples : numpy.ndarray
        float32, shape (n,), within ±1, at `sample_rate_hz`.
    segment_id, chunk_id : int
        `chunk_id` counts up from 0 over the whole stream and never repeats; `segment_id` is the
        segment in which the chunk starts.
    start_s : float
        Position of the first sample in the stream, in seconds.
    """

    samples: Samples
    sample_rate_hz: int
    segment_id: int
    chunk_id: int
    start_s: float

    @property
    def duration_s(self) -> float:
        return float(len(self.samples)) / self.sample_rate_hz


@dataclass(frozen=True, slots=True)
class Fallback:
    """A substitution that was made instead of failing, and why. `start`, `end` point into the text."""

    stage: str
    reason: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """The provider that spoke a segment, and the reason.

    Parameters
    ----------
    provider : str
        As a user types it, or as ONNX Runtime calls it where nothing was chosen.
    reason : str
        The reason: the user's request, or the measured costs of this provider and the others.
    segment_id, token_count : int
        The segment, and its length in token ids.
    """

    provider: str
    reason: str
    segment_id: int = 0
    token_count: int = 0


@dataclass(frozen=True, slots=True)
class SynthesisReport:
    """The cost of a synthesis, and the models and providers that ran. Time in which the engine waits for the
    listener never counts as computing.

    `ttfa_s` runs from the accepted request to the first sample of speech handed over: for a file that is when
    the whole clip is there; where `first_audio` came from the cache of first audio, it is NaN. `compute_s` is
    the time in which any stage was at work; `text_s`, `model_s` and `dsp_s` are the times of the single
    stages, which may overlap. `rtf` is `compute_s / audio_s`. `choices` has the provider of each segment.
    `stretches` has how many times as long each segment was made by a time stretch, 1 where the model itself
    spoke at `speed`.
    """

    voice: str
    speed: float
    language: str
    characters: int
    segments: int
    token_count: int
    words: int
    audio_s: float
    compute_s: float
    text_s: float
    model_s: float
    dsp_s: float
    ttfa_s: float
    first_audio: Literal["computed", "cache"]
    streamed: bool
    variant: str
    model_sha256: str
    requested_provider: str
    active_provider: str
    threads: int
    statistics: str
    loudness: str
    gain_db: float
    limited_db: float
    style_rows: tuple[int, ...] = ()
    stretches: tuple[float, ...] = ()
    choices: tuple[ProviderChoice, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    session: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def rtf(self) -> float:
        """Seconds of computing per second of audio; lower is better."""
        return self.compute_s / self.audio_s if self.audio_s else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A finished utterance. The last expression of a notebook cell plays it.

    `samples` is float32 mono, shape (n,), after gain and limiter, before dither.
    """

    samples: Samples
    sample_rate_hz: int
    report: SynthesisReport
    segments: tuple[Segment, ...] = ()
    timings: tuple[WordTiming, ...] = ()
    marks: tuple[MarkTiming, ...] = ()
    seed: int = 0

    @property
    def duration_s(self) -> float:
        return float(len(self.samples)) / self.sample_rate_hz

    def _repr_html_(self) -> str:
        player = imported("IPython.display", extra="lab").Audio
        html = player(self.samples, rate=self.sample_rate_hz, normalize=False)._repr_html_()
        r = self.report
        return (
            f"{html}<small>{r.voice}, {self.duration_s:.2f} s, "
            f"RTF {r.rtf:.3f}, {r.variant} on {r.active_provider}</small>"
        )
