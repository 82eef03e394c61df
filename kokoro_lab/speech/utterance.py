"""What was asked, checked: from a text and options to an utterance that can be spoken."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from kokoro_lab.config import SPEED_MAX, SPEED_MIN
from kokoro_lab.datatypes import Utterance
from kokoro_lab.errors import ParameterError, TextError
from kokoro_lab.typed import fits, require_least, require_types

LOUDNESS_MODES = ("auto", "measured", "voice", "none")
STATISTICS_MODES = ("auto", "predicted", "exact")
INPUT_FORMATS = ("text", "ssml")
DETECTION_MODES = ("auto", "scripts", "off")
CHECKED_ELSEWHERE = frozenset({"lexicon", "speed"})
"""A lexicon may be given in several forms, and a `LexiconError` says what is wrong with it."""
_OPTIONS = frozenset(field.name for field in fields(Utterance)) - {"text"}


def utterance_of(text: str | Utterance, options: dict[str, Any], *, streamed: bool) -> Utterance:
    """The utterance that is meant, with every `auto` resolved.

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
    _check_speed(asked.speed)
    require_least("seed", asked.seed, 0, ParameterError)
    _mode("input_format", asked.input_format, INPUT_FORMATS)
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
    if value not in modes:
        raise ParameterError(
            f"There is no {field} mode {value!r}.", field=field, value=value, allowed=", ".join(modes)
        )
    return value


def _check_speed(speed: float) -> None:
    if not (fits(speed, float) and SPEED_MIN <= speed <= SPEED_MAX):
        raise ParameterError(
            f"A speed of {speed!r} is out of range.",
            field="speed",
            value=speed,
            allowed=f"{SPEED_MIN} to {SPEED_MAX}",
        )
