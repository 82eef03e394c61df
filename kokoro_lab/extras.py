"""Imports of packages that only an extra installs, with an error that names the extra if one is missing."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from kokoro_lab.errors import MissingExtra

MISAKI = "pip install --no-deps --ignore-requires-python misaki==0.9.4"
"""The command that installs misaki on Python 3.13, where it runs although its metadata refuses it."""


def imported(module: str, *, extra: str) -> Any:
    """Import a module that `extra` installs.

    Raises
    ------
    MissingExtra
        The module, or a package that it needs, is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(extra, error.name or module) from error


def require(extra: str, *modules: str) -> None:
    """Raise unless all of `modules`, which `extra` installs, are installed. Loads nothing.

    Raises
    ------
    MissingExtra
        One of them is not installed.
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(extra, module)
