"""Checks a text and its options, and settles what depends on the engine: voice, language, decoder."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from kokoro_lab.config import (
    CODE_MODES,
    DETECTION_MODES,
    EMOJI_MODES,
    INPUT_FORMATS,
    SPEED_MAX,
    SPEED_MIN,
)
from kokoro_lab.datatypes import Fallback, ProviderChoice, Utterance
from kokoro_lab.errors import ParameterError, TextError
from kokoro_lab.g2p.lexicon import Lexicon
from kokoro_lab.g2p.lexicon_entries import request_entries
from kokoro_lab.model.choosing import ByLength
from kokoro_lab.model.decoder import Decoder
from kokoro_lab.speech.parts import Parts
from kokoro_lab.text.language import understood
from kokoro_lab.typed import require_choice, require_range, require_types
from kokoro_lab.weights.voices import Voice

LOUDNESS_MODES = ("auto", "measured", "voice", "none")
STATISTICS_MODES = ("auto", "predicted", "exact")
CHECKED_ELSEWHERE = frozenset({"lexicon", "speed"})
"""Options whose types are checked elsewhere. A lexicon may be given in several forms, and a `LexiconError`
says what is wrong with it."""
_OPTIONS = frozenset(field.name for field in fields(Utterance)) - {"text"}


@dataclass(frozen=True, slots=True, eq=False)
class CheckedUtterance:
    """An utterance that an engine can speak, and all that the engine settles before it reads the text.

    Parameters
    ----------
    utterance : Utterance
        The text and its options, with every `auto` resolved.
    streamed : bool
        Whether somebody listens while it is computed; else it is joined into a file.
    voice : Voice
    language : str
        The language of the text, unless the document names another.
    lexicon : Lexicon
        The engine's lexicon as it is now, with the request's own entries.
    decoder : Decoder
        The decoder for a text of this length.
    choice : ProviderChoice or None
        The provider for a text of this length and the reason; None if the length does not matter.
    statistics : str
        The statistics with which the vocoder normalises: `predicted` or `exact`.
    fallbacks : tuple of Fallback
        Substitutions made so far.
    accepted : float
        When the request was accepted, by `time.perf_counter`.
    """

    utterance: Utterance
    streamed: bool
    voice: Voice
    language: str
    lexicon: Lexicon
    decoder: Decoder
    choice: ProviderChoice | None
    statistics: str
    fallbacks: tuple[Fallback, ...]
    accepted: float

    def digest(self, chunk_s: float, provider: str) -> str:
        """SHA-256 of all parts of a request that change its samples or its chunks.

        The only part of the engine's configuration in it is the `provider`, which may be lost while the
        engine runs.
        """
        settled = {"voice": self.voice.name, "language": self.language, "statistics": self.statistics}
        options = sorted((asdict(self.utterance) | settled).items())
        return hashlib.sha256(repr((options, chunk_s, self.lexicon.version, provider)).encode()).hexdigest()


def checked_utterance(
    parts: Parts, text: str | Utterance, options: dict[str, Any], *, streamed: bool
) -> CheckedUtterance:
    """The checked utterance of a text and its options, for the engine that has `parts`.

    Raises
    ------
    VoiceError, LanguageError, LexiconError, ParameterError
        The text cannot be spoken with these options.
    """
    accepted = time.perf_counter()
    utterance = utterance_of(text, options, streamed=streamed)
    utterance = replace(utterance, lexicon=request_entries(utterance.lexicon))
    decoder: Decoder = parts.decoder
    choice = None
    if isinstance(decoder, ByLength):
        decoder, choice = decoder.of_text(len(utterance.text))
    voice = parts.voices(utterance.voice)
    language, instead = understood(utterance.language or voice.language)
    lexicons = parts.front_end.lexicons
    lexicon = lexicons.current().with_request(utterance.lexicon)
    fallbacks = [*parts.fallbacks, *lexicons.problems()]
    if instead is not None:
        fallbacks.append(Fallback("language", instead))
    statistics = utterance.statistics
    if statistics == "predicted" and (reason := decoder.predicts(voice)) is not None:
        statistics = "exact"
        fallbacks.append(Fallback("statistics", f"exact instead of predicted: {reason}"))
    return CheckedUtterance(
        utterance, streamed, voice, language, lexicon, decoder, choice, statistics, tuple(fallbacks), accepted
    )


def utterance_of(text: str | Utterance, options: dict[str, Any], *, streamed: bool) -> Utterance:
    """The utterance of a text and its options, with every `auto` resolved.

    What `auto` means depends on the request alone, never on the clock: the same request gives the same
    samples.

    Raises
    ------
    ParameterError
        An unknown option, or a value of the wrong type or out of range.
    """
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        raise ParameterError(
            f"There is no option {unknown[0]!r}.",
            field=unknown[0],
            value=options[unknown[0]],
            allowed=", ".join(sorted(_OPTIONS)),
        )
    asked = replace(text, **options) if isinstance(text, Utterance) else Utterance(text, **options)
    require_types(asked, ParameterError, CHECKED_ELSEWHERE)
    message = f"A speed of {asked.speed!r} is out of range."
    require_range("speed", asked.speed, SPEED_MIN, SPEED_MAX, message)
    require_range("seed", asked.seed, 0)
    _mode("input_format", asked.input_format, INPUT_FORMATS)
    _mode("code", asked.code, CODE_MODES)
    _mode("emoji", asked.emoji, EMOJI_MODES)
    loudness = _mode("loudness", asked.loudness, LOUDNESS_MODES)
    statistics = _mode("statistics", asked.statistics, STATISTICS_MODES)
    _mode("detect_languages", asked.detect_languages, DETECTION_MODES)
    if loudness == "auto":
        loudness = "voice" if streamed else "measured"
    if statistics == "auto":
        statistics = "predicted" if streamed else "exact"
    return replace(asked, loudness=loudness, statistics=statistics)


def nothing_to_speak(text: str) -> TextError:
    """The error for a text in which nothing has a sound."""
    return TextError(
        "There is nothing to speak in this text.",
        field="input",
        value=f"{len(text)} characters",
        allowed="a text with at least one letter, digit or mark",
    )


def _mode(field: str, value: str, modes: tuple[str, ...]) -> str:
    require_choice(field, value, modes, f"There is no {field} mode {value!r}.")
    return value
