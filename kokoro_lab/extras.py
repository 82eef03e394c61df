"""What is installed only by an extra: imported here, or missed with a sentence that names the extra."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from kokoro_lab.errors import MissingExtra

MISAKI = "pip install --no-deps --ignore-requires-python misaki==0.9.4"
"""How misaki is had on Python 3.13, on which it runs, but which its metadata refuses."""


def imported(module: str, *, extra: str) -> Any:
    """The module of that name, of a package of `extra`.

    Raises
    ------
    MissingExtra
        It is not installed, or what it needs itself.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(extra, error.name or module) from error


def require(extra: str, *modules: str) -> None:
    """Go on only where all of `modules`, of packages of `extra`, are installed. Loads nothing.

    Raises
    ------
    MissingExtra
        One of them is not.
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(extra, module)
