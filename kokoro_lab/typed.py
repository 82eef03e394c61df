"""Checks of callers' values against the stated types: one clear error instead of a traceback.

Python checks no types, and a wrong one is found late and elsewhere: `seed="1"` when the file is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kokoro_lab.errors import KokoroLabError, ParameterError

_NAMES: Mapping[Any, str] = {
    str: "a str",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Path: "a pathlib.Path",
    Mapping: "a mapping",
    NoneType: "None",
}
_SHOWN_CHARACTERS = 40


def require_type(
    field: str, value: Any, hint: Any, error: type[KokoroLabError], *, text: bool = False
) -> None:
    """Refuse a value that is not of the type that `hint` states.

    A bool is no number, NumPy's numbers are. For types that are not known here, `isinstance` decides.

    Parameters
    ----------
    field : str
        The caller's name for the value, for the error.
    hint : type
        A type, a Literal, or a union of them.
    error : type of KokoroLabError
        The class of the error that is raised.
    text : bool
        Whether the value is private: then the error does not show the value, only the name of its type.

    Raises
    ------
    KokoroLabError
        The value is not of the type; the error names the types that are allowed.
    """
    if not fits(value, hint):
        shown = type(value).__name__ if text else repr(value)[:_SHOWN_CHARACTERS]
        raise error(f"{field} cannot be {shown}.", field=field, value=shown, allowed=_named(hint))


def require_arguments(function: Callable[..., Any], given: Mapping[str, Any], *names: str) -> None:
    """Refuse arguments of `function` that are not of the types that it states.

    Parameters
    ----------
    given : mapping
        All arguments by name: `locals()`, called where the function begins.
    names : str
        Names of the arguments to check.

    Raises
    ------
    ParameterError
        An argument is not of its type; the error names the first such argument.
    """
    for name in names:
        require_type(name, given[name], _hints(function)[name], ParameterError)


def require_types(given: Any, error: type[KokoroLabError], leave_out: frozenset[str] = frozenset()) -> None:
    """Refuse a dataclass with a field that is not of its type; fields in `leave_out` are not looked at.

    Raises
    ------
    KokoroLabError
        A field is not of its type; the error, of the class `error`, names the first such field.
    """
    for field, hint in _hints(given.__class__).items():
        if field not in leave_out:
            require_type(field, getattr(given, field), hint, error, text=field == "text")


def require_choice(
    field: str,
    value: object,
    choices: Collection[object],
    message: str,
    error: type[KokoroLabError] = ParameterError,
) -> None:
    """Refuse what is none of `choices`, in the words of `message`.

    Raises
    ------
    KokoroLabError
        The value is none of the choices; the error names them all.
    """
    if value not in choices:
        raise error(message, field=field, value=value, allowed=", ".join(map(str, choices)))


def require_range(
    field: str,
    value: float,
    least: float,
    most: float | None = None,
    message: str | None = None,
    error: type[KokoroLabError] = ParameterError,
) -> None:
    """Refuse a value that is no number, or is below `least`, or above `most` if that is given. The error says
    `message`, or by default that the field cannot have this value.

    Raises
    ------
    KokoroLabError
        The value is out of range; the error names both ends.
    """
    if not (fits(value, float) and value >= least and (most is None or value <= most)):
        allowed = f"{least} or more" if most is None else f"{least} to {most}"
        raise error(message or f"{field} cannot be {value}.", field=field, value=value, allowed=allowed)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that `hint` states, as `require_type` has it."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if hint is bool:
        return isinstance(value, bool)
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _named(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return " or ".join(_named(one) for one in get_args(hint))
    if origin is Literal:
        return ", ".join(get_args(hint))
    return _NAMES.get(origin or hint, f"a {(origin or hint).__name__}")


@cache
def _hints(kind: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(kind)
