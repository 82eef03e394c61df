"""Which elements and attributes there are, what may stand in what, and what each of them asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kokoro_lab.datatypes import PLAIN, SpeakingStyle
from kokoro_lab.errors import LanguageError, SsmlError
from kokoro_lab.text.language import resolve_language
from kokoro_lab.text.ssml import say_as, values
from kokoro_lab.text.ssml.markup import Opening, error_at, shown

T = TypeVar("T")

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "speak": ("version", "xml:lang"),
    "p": ("xml:lang",),
    "s": ("xml:lang",),
    "lang": ("xml:lang",),
    "break": ("strength", "time"),
    "say-as": ("interpret-as", "format"),
    "emphasis": ("level",),
    "prosody": ("rate", "pitch"),
}
"""Element → what it may have."""
BARS: Mapping[str, frozenset[str]] = {
    "p": frozenset({"p"}),
    "s": frozenset({"p", "s"}),
    "emphasis": frozenset({"p", "s"}),
    "break": frozenset(ATTRIBUTES),
    "say-as": frozenset(ATTRIBUTES),
}
"""Element → what must not be in it, at any depth. Nothing else forbids anything but `speak`."""
VERSIONS = ("1.0", "1.1")


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds inside an element that is open."""

    name: str
    children: frozenset[str]
    prosody: SpeakingStyle = PLAIN
    emphasis: SpeakingStyle = PLAIN
    language: str | None = None

    @property
    def style(self) -> SpeakingStyle:
        """How text that stands here is spoken."""
        return self.prosody.around(self.emphasis)


OUTSIDE = Scope("", frozenset({"speak"}))


def entered(scope: Scope, element: Opening) -> Scope:
    """What holds inside `element`, which stands in `scope`.

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
    if "xml:lang" in element.attributes:
        inner = replace(inner, language=_language(element))
    if name == "prosody":
        inner = replace(inner, prosody=_prosody(scope, element))
    if name == "emphasis":
        # Of emphasis within emphasis, the inner one counts: `none` takes it back
        level = _read(element, "level", values.EMPHASIS.get, values.ALLOWED_EMPHASIS)
        inner = replace(inner, emphasis=values.EMPHASIS["moderate"] if level is None else level)
    if name == "say-as":
        reading(element)
    return inner


def pause_s(element: Opening) -> float:
    """Seconds that a `break` asks for; 0 where there is to be none. `time` comes before `strength`."""
    time_s = _read(element, "time", values.read_time, values.ALLOWED_TIME)
    strength_s = _read(element, "strength", values.BREAKS_S.get, values.ALLOWED_STRENGTHS)
    return next((s for s in (time_s, strength_s) if s is not None), values.BREAKS_S["medium"])


def reading(element: Opening) -> tuple[str, str | None]:
    """The kind and the format that a `say-as` gives."""
    kind = _read(element, "interpret-as", _one_of(say_as.KINDS), ", ".join(say_as.KINDS))
    if kind is None:
        raise _missing(element, "interpret-as", ", ".join(say_as.KINDS))
    formats = say_as.FORMATS.get(kind, ())
    allowed = ", ".join(formats) or f"no format with interpret-as={kind!r}"
    return kind, _read(element, "format", _one_of(formats), allowed)


def complaint(element: Opening, message: str, **parts: Any) -> SsmlError:
    """An error about `element`."""
    return error_at(element.position, message, element=shown(element.name), **parts)


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
            raise complaint(
                element,
                f"<{element.name}> has no attribute {shown(name)!r} in this subset of SSML.",
                attribute=shown(name),
                value=shown(element.attributes[name]),
                allowed=", ".join(known),
            )
    if element.name == "lang" and "xml:lang" not in element.attributes:
        raise _missing(element, "xml:lang", "a language such as en-GB")
    _read(element, "version", _one_of(VERSIONS), ", ".join(VERSIONS))


def _prosody(scope: Scope, element: Opening) -> SpeakingStyle:
    rate = _read(element, "rate", values.read_rate, values.ALLOWED_RATE)
    pitch = _read(element, "pitch", values.read_pitch, values.ALLOWED_PITCH)
    if rate is None and pitch is None:
        raise _missing(element, "rate' or 'pitch", "at least one of them")
    style = scope.prosody.around((rate or PLAIN).around(pitch or PLAIN))
    if not values.rate_in_range(style.rate):
        raise _out_of_range(element, "rate", style.rate, values.ALLOWED_RATE)
    # What hertz come to depends on the voice: that is seen to where its pitch is known
    if style.pitch_base_hz is None and not values.pitch_in_range(style.pitch_scale):
        raise _out_of_range(element, "pitch", style.pitch_scale, values.ALLOWED_PITCH)
    return style


def _out_of_range(element: Opening, attribute: str, factor: float, allowed: str) -> SsmlError:
    return complaint(
        element,
        f"With what is around it, this {attribute} comes to {factor:.0%} of the voice's own.",
        attribute=attribute,
        value=shown(element.attributes.get(attribute, "")),
        allowed=allowed,
    )


def _language(element: Opening) -> str:
    tag = element.attributes["xml:lang"]
    try:
        return resolve_language(tag)
    except LanguageError as error:
        raise complaint(
            element,
            f"There is no G2P for the language {shown(tag)!r}.",
            attribute="xml:lang",
            value=shown(tag),
            allowed=error.allowed,
        ) from None


def _read(element: Opening, attribute: str, read: Callable[[str], T | None], allowed: str) -> T | None:
    """What an attribute says; None if it is not there."""
    if attribute not in element.attributes:
        return None
    value = element.attributes[attribute].strip()
    found = read(value)
    if found is None:
        raise complaint(
            element,
            f"<{element.name} {attribute}={shown(value)!r}> cannot be followed.",
            attribute=attribute,
            value=shown(value),
            allowed=allowed,
        )
    return found


def _missing(element: Opening, attribute: str, allowed: str) -> SsmlError:
    return complaint(
        element, f"<{element.name}> needs the attribute '{attribute}'.", attribute=attribute, allowed=allowed
    )


def _one_of(allowed: tuple[str, ...]) -> Callable[[str], str | None]:
    return lambda value: value if value in allowed else None
