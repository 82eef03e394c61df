"""The elements and attributes of the subset: which may contain which, and what each of them means.

Labels such as `fast` and `x-strong` have the factors that Azure publishes for its own service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from kokoro_lab.config import PITCH_MAX, PITCH_MIN, RATE_MAX, RATE_MIN
from kokoro_lab.datatypes import PLAIN, SpeakingStyle
from kokoro_lab.errors import InputError, LanguageError, SsmlError
from kokoro_lab.text.language import resolve_language
from kokoro_lab.text.ssml import say_as
from kokoro_lab.text.ssml.markup import Opening, error_at, shown

T = TypeVar("T")

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "speak": ("version", "xml:lang"),
    "p": ("xml:lang",),
    "s": ("xml:lang",),
    "lang": ("xml:lang",),
    "voice": ("name", "xml:lang"),
    "break": ("strength", "time"),
    "mark": ("name",),
    "say-as": ("interpret-as", "format"),
    "phoneme": ("alphabet", "ph"),
    "sub": ("alias",),
    "emphasis": ("level",),
    "prosody": ("rate", "pitch"),
}
"""Element → its allowed attributes."""
BARS: Mapping[str, frozenset[str]] = {
    "p": frozenset({"p"}),
    **dict.fromkeys(("s", "emphasis"), frozenset({"p", "s"})),
    **dict.fromkeys(("break", "mark", "say-as", "phoneme", "sub"), frozenset(ATTRIBUTES)),
}
"""Element → elements that it must not contain, at any depth. All other elements may contain anything except
`speak`."""
VERSIONS = ("1.0", "1.1")
ALPHABETS = ("ipa",)

MAX_VOICES = 64
"""Most voices of a document: as many as an engine keeps."""
MAX_BREAK_S = 10.0
MAX_ROW_S = 60.0
"""Longest silence that breaks may make without speech between them. A listener would take a longer one for
the end of the speech."""
MAX_BREAKS_S = 600.0
"""Longest silence by all breaks of a document. Without this limit, 4 kB of SSML could make hours of
silence."""
BASE_MIN_HZ, BASE_MAX_HZ = 40.0, 600.0
"""The range to which a document may set the average pitch."""
OFFSET_MAX_HZ = 300.0
SEMITONE = 2 ** (1 / 12)

BREAKS_S = {"none": 0.0, "x-weak": 0.25, "weak": 0.5, "medium": 0.75, "strong": 1.0, "x-strong": 1.25}
RATES = {"x-slow": 0.5, "slow": 0.64, "medium": 1.0, "fast": 1.55, "x-fast": 2.0, "default": 1.0}
PITCHES = {"x-low": 0.55, "low": 0.8, "medium": 1.0, "high": 1.2, "x-high": 1.45, "default": 1.0}
EMPHASIS = {
    "strong": SpeakingStyle(rate=0.8, pitch_scale=SEMITONE**2, gain_db=4.0),
    "moderate": SpeakingStyle(rate=0.88, pitch_scale=SEMITONE**1.5, gain_db=2.5),
    "none": PLAIN,
    "reduced": SpeakingStyle(rate=1.15, pitch_scale=SEMITONE**-1.5, gain_db=-4.0),
}
"""A stressed word is higher, longer and louder. By Fry (1955 and 1958), pitch matters most, then length, then
loudness. misaki's stress marks hardly change a word that is stressed already."""

ALLOWED_STRENGTHS = ", ".join(BREAKS_S)
ALLOWED_TIME = f"seconds or milliseconds such as 250ms or 1.5s, up to {MAX_BREAK_S:g}s"
ALLOWED_BREAKS = f"up to {MAX_ROW_S:g}s of breaks in a row, and up to {MAX_BREAKS_S:g}s in a document"
ALLOWED_RATE = f"{RATE_MIN:.0%} to {RATE_MAX:.0%} of the usual rate, without a sign, or {', '.join(RATES)}"
ALLOWED_PITCH = (
    f"a change such as +10%, -2st or +20Hz, or an average such as 180Hz, within {PITCH_MIN:g} to "
    f"{PITCH_MAX:g} times the voice's own, or {', '.join(PITCHES)}"
)
ALLOWED_EMPHASIS = ", ".join(EMPHASIS)

_NUMBER = r"(?:[0-9]{1,6}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})"
_TIME = re.compile(rf"({_NUMBER})(ms|s)")
_PERCENTAGE = re.compile(rf"({_NUMBER})%")
_CHANGE = re.compile(rf"([+-]{_NUMBER})(%|st|Hz)")
_FREQUENCY = re.compile(rf"({_NUMBER})Hz")


class Outside(NamedTuple):
    """Looks up names for which this package has no list. Each function raises an `InputError` for an unknown
    name.

    Parameters
    ----------
    phonemes : callable
        Takes IPA; returns the symbols of the model.
    language_of : callable
        Takes a voice; returns the canonical tag of its language.
    """

    phonemes: Callable[[str], str] = str
    language_of: Callable[[str], str] = lambda _: "en-us"


class Turn(NamedTuple):
    """A voice that the document names, and its language."""

    voice: str
    language: str


@dataclass(frozen=True, slots=True)
class Scope:
    """The settings in force inside an open element."""

    name: str
    children: frozenset[str]
    prosody: SpeakingStyle = PLAIN
    emphasis: SpeakingStyle = PLAIN
    language: str | None = None
    turn: Turn | None = None

    @property
    def style(self) -> SpeakingStyle:
        """The speaking style of the text at the present place of the document."""
        return self.prosody.around(self.emphasis)


ROOT = Scope("", frozenset({"speak"}))


def entered(scope: Scope, element: Opening, outside: Outside) -> Scope:
    """The scope inside `element`, which is opened in `scope`.

    Raises
    ------
    SsmlError
        The element is unknown or not allowed there; an attribute is unknown, missing or wrong.
    """
    _check_position(scope, element)
    _check_attributes(element)
    name = element.name
    children = (
        frozenset(ATTRIBUTES) - {"speak"} if name == "speak" else scope.children - BARS.get(name, frozenset())
    )
    inner = replace(scope, name=name, children=children)
    if name == "voice":
        voice = required(element, "name", "a voice or a blend")
        turn = Turn(voice, _looked_up(element, "name", outside.language_of, voice))
        inner = replace(inner, turn=turn, language=None)
    if "xml:lang" in element.attributes:
        inner = replace(inner, language=_language(element))
    if name == "prosody":
        inner = replace(inner, prosody=_prosody(scope, element))
    if name == "emphasis":
        # In nested emphasis, the inner one counts: `none` removes it
        level = _read(element, "level", EMPHASIS.get, ALLOWED_EMPHASIS)
        inner = replace(inner, emphasis=EMPHASIS["moderate"] if level is None else level)
    if name == "say-as":
        reading(element)
    return inner


def pause_s(element: Opening) -> float:
    """The seconds of a `break`; 0 removes a pause. If it has both attributes, `time` counts and not
    `strength`."""
    time_s = _read(element, "time", read_time, ALLOWED_TIME)
    strength_s = _read(element, "strength", BREAKS_S.get, ALLOWED_STRENGTHS)
    return next((s for s in (time_s, strength_s) if s is not None), BREAKS_S["medium"])


def reading(element: Opening) -> tuple[str, str | None]:
    """The kind and the format that a `say-as` gives."""
    kind = _read(element, "interpret-as", _one_of(say_as.KINDS), ", ".join(say_as.KINDS))
    if kind is None:
        raise _missing(element, "interpret-as", ", ".join(say_as.KINDS))
    formats = say_as.FORMATS.get(kind, ())
    allowed = ", ".join(formats) or f"no format with interpret-as={kind!r}"
    return kind, _read(element, "format", _one_of(formats), allowed)


def phonemes(element: Opening, outside: Outside) -> str:
    """The phonemes of a `phoneme` element, in symbols of the model."""
    _read(element, "alphabet", _one_of(ALPHABETS), ", ".join(ALPHABETS))
    return _looked_up(element, "ph", outside.phonemes, required(element, "ph", "phonemes in IPA"))


def complaint(element: Opening, message: str, **parts: Any) -> SsmlError:
    """An error about `element`."""
    return error_at(element.position, message, element=shown(element.name), **parts)


def refusal(
    element: Opening, attribute: str, value: str, message: str, allowed: str | None, **parts: Any
) -> SsmlError:
    """An error about the value of an attribute of `element`."""
    return complaint(
        element, message, attribute=shown(attribute), value=shown(value), allowed=allowed, **parts
    )


def _check_position(scope: Scope, element: Opening) -> None:
    name = element.name
    if name in scope.children:
        return
    if not scope.name:
        message = f"The document must begin with <speak>, not with <{shown(name)}>."
    elif name in ATTRIBUTES:
        message = f"<{name}> must not stand inside of <{scope.name}> here."
    else:
        message = f"There is no element <{shown(name)}> in this subset of SSML."
    allowed = ", ".join(f"<{child}>" for child in ATTRIBUTES if child in scope.children)
    raise complaint(element, message, allowed=allowed or f"only text in <{scope.name}>")


def _check_attributes(element: Opening) -> None:
    known = ATTRIBUTES[element.name]
    for name in element.attributes:
        if name not in known:
            message = f"<{element.name}> has no attribute {shown(name)!r} in this subset of SSML."
            raise refusal(element, name, element.attributes[name], message, ", ".join(known))
    if element.name == "lang" and "xml:lang" not in element.attributes:
        raise _missing(element, "xml:lang", "a language such as en-GB")
    _read(element, "version", _one_of(VERSIONS), ", ".join(VERSIONS))


def _prosody(scope: Scope, element: Opening) -> SpeakingStyle:
    rate = _read(element, "rate", read_rate, ALLOWED_RATE)
    pitch = _read(element, "pitch", read_pitch, ALLOWED_PITCH)
    if rate is None and pitch is None:
        raise _missing(element, "rate' or 'pitch", "at least one of them")
    style = scope.prosody.around((rate or PLAIN).around(pitch or PLAIN))
    if not rate_in_range(style.rate):
        raise _out_of_range(element, "rate", style.rate, ALLOWED_RATE)
    # The effect of hertz depends on the voice: it is checked where the voice's pitch is known
    if style.pitch_base_hz is None and not pitch_in_range(style.pitch_scale):
        raise _out_of_range(element, "pitch", style.pitch_scale, ALLOWED_PITCH)
    return style


def _out_of_range(element: Opening, attribute: str, factor: float, allowed: str) -> SsmlError:
    message = f"With what is around it, this {attribute} comes to {factor:.0%} of the voice's own."
    return refusal(element, attribute, element.attributes.get(attribute, ""), message, allowed)


def _language(element: Opening) -> str:
    tag = element.attributes["xml:lang"]
    try:
        return resolve_language(tag)
    except LanguageError as error:
        message = f"There is no G2P for the language {shown(tag)!r}."
        raise refusal(element, "xml:lang", tag, message, error.allowed) from None


def _read(element: Opening, attribute: str, read: Callable[[str], T | None], allowed: str) -> T | None:
    """The value of an attribute; None if it is missing."""
    if attribute not in element.attributes:
        return None
    value = element.attributes[attribute].strip()
    found = read(value)
    if found is None:
        message = f"<{element.name} {attribute}={shown(value)!r}> cannot be followed."
        raise refusal(element, attribute, value, message, allowed)
    return found


def required(element: Opening, attribute: str, allowed: str) -> str:
    """The value of a required attribute, which must not be empty."""
    value = element.attributes.get(attribute, "").strip()
    if not value:
        raise _missing(element, attribute, allowed)
    return value


def _looked_up(element: Opening, attribute: str, look_up: Callable[[str], str], value: str) -> str:
    """Look up a value by a function of `Outside`. If that raises an error, this raises one that names the
    place in the document."""
    try:
        return look_up(value)
    except InputError as error:
        message = f"<{element.name} {attribute}={shown(value)!r}>: {error.message}"
        raise refusal(element, attribute, value, message, error.allowed, mend=error.mend) from None


def _missing(element: Opening, attribute: str, allowed: str) -> SsmlError:
    return complaint(
        element, f"<{element.name}> needs the attribute '{attribute}'.", attribute=attribute, allowed=allowed
    )


def _one_of(allowed: tuple[str, ...]) -> Callable[[str], str | None]:
    return lambda value: value if value in allowed else None


def read_time(value: str) -> float | None:
    """The seconds that the `time` of a `break` gives; None if it is no time, or too long."""
    match = _TIME.fullmatch(value)
    if not match:
        return None
    seconds = float(match[1]) / (1000 if match[2] == "ms" else 1)
    return seconds if seconds <= MAX_BREAK_S else None


def read_rate(value: str) -> SpeakingStyle | None:
    """The style that the `rate` of a `prosody` gives; None if it is no rate, or out of range. A percentage is
    a factor, as in SSML 1.1; at Azure, it is a change."""
    match = _PERCENTAGE.fullmatch(value)
    rate = float(match[1]) / 100 if match else RATES.get(value)
    return SpeakingStyle(rate=rate) if rate is not None and rate_in_range(rate) else None


def read_pitch(value: str) -> SpeakingStyle | None:
    """The style that the `pitch` of a `prosody` gives; None if it is no pitch, or out of range."""
    if value in PITCHES:
        return SpeakingStyle(pitch_scale=PITCHES[value])
    absolute = _FREQUENCY.fullmatch(value)
    if absolute:
        base_hz = float(absolute[1])
        return SpeakingStyle(pitch_base_hz=base_hz) if BASE_MIN_HZ <= base_hz <= BASE_MAX_HZ else None
    change = _CHANGE.fullmatch(value)
    if not change:
        return None
    amount = float(change[1])
    if change[2] == "Hz":
        return SpeakingStyle(pitch_offset_hz=amount) if abs(amount) <= OFFSET_MAX_HZ else None
    # With many semitones, the power would overflow
    scale = SEMITONE ** min(amount, 100.0) if change[2] == "st" else 1 + amount / 100
    return SpeakingStyle(pitch_scale=scale) if pitch_in_range(scale) else None


def rate_in_range(rate: float) -> bool:
    """Whether a rate, perhaps of several nested elements, is one that is spoken."""
    return RATE_MIN - 1e-9 <= rate <= RATE_MAX + 1e-9


def pitch_in_range(scale: float) -> bool:
    """Whether a factor of the pitch, perhaps of several nested elements, is one that is spoken."""
    return PITCH_MIN - 1e-9 <= scale <= PITCH_MAX + 1e-9
