"""What an installation may lack: packages that only an extra installs, and files that came with kokoro-lab.

The errors say what to install.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kokoro_lab.errors import IntegrityError, MissingExtra

if TYPE_CHECKING:
    import numpy.typing as npt

MISAKI = "pip install --no-deps --ignore-requires-python misaki==0.9.4"
"""The command that installs misaki on Python 3.13. misaki runs there, although its metadata refuses that
version."""


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


AGAIN = "It came with kokoro-lab: install kokoro-lab again."


def shipped_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz file that this package ships; the checksums in it are compared as it is read.

    Raises
    ------
    IntegrityError
        The file does not exist, or is damaged.
    """
    import zipfile
    import zlib

    import numpy as np  # fetching weights needs no NumPy

    try:
        with path.open("rb") as file, np.load(file) as stored:
            return {name: stored[name] for name in stored.files}
    except (
        *(OSError, EOFError, ValueError, KeyError, AttributeError, RuntimeError),
        *(zipfile.BadZipFile, zlib.error),
    ) as error:
        raise IntegrityError(
            f"{path} cannot be read ({type(error).__name__}: {error}).",
            field=path.name,
            value=str(path),
            mend=AGAIN,
        ) from error
