"""The prebuilt library of our operators in some wheels, compiled for every instruction set.

native/prebuilt/operators.so      one library for all instruction sets of a platform (scripts/wheels)
native/prebuilt/operators.json    its size and SHA-256, what made it, and its instruction sets
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kokoro_lab.config import InstructionSet
from kokoro_lab.errors import SettingsError
from kokoro_lab.weights.joining import sha256_of
from kokoro_lab.weights.verified import DAMAGED

FOLDER = Path(__file__).parent / "prebuilt"
LIBRARY_NAME = "operators.so"
RECORD_NAME = "operators.json"


class UnusableLibrary(Exception):
    """A prebuilt library is there and cannot be used; the message says why."""


def record() -> Mapping[str, Any] | None:
    """The record of the prebuilt library; None if the installation has none.

    Raises
    ------
    UnusableLibrary
        The record cannot be read.
    """
    try:
        found: dict[str, Any] = json.loads((FOLDER / RECORD_NAME).read_text("utf-8"))
        sets, digest = list(found["instruction_sets"]), str(found["sha256"])
        return {**found, "bytes": int(found["bytes"]), "sha256": digest, "instruction_sets": sets}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableLibrary(f"{RECORD_NAME} cannot be read ({type(error).__name__}: {error})") from error


def library_for(wanted: InstructionSet) -> tuple[Path, str] | None:
    """The prebuilt library, after its digest was checked. Its operators use the instruction set `wanted` from
    now on.

    The choice holds for the process; sessions that were made before keep the operators that they have.

    Returns
    -------
    tuple of Path and str, or None
        The library and its description; None if the installation has none.

    Raises
    ------
    UnusableLibrary
        The library is damaged, cannot be loaded, or has no instruction set for this processor.
    SettingsError
        The library does not hold the wanted set, or this processor lacks it.
    """
    known = record()
    if known is None:
        return None
    library = FOLDER / LIBRARY_NAME
    try:
        # At every start: it is small, and its folder may be one that only an administrator writes to
        if library.stat().st_size != known["bytes"] or sha256_of(library) != known["sha256"]:
            raise UnusableLibrary(f"{LIBRARY_NAME} {DAMAGED}")
        loaded = ctypes.CDLL(str(library))
    except OSError as error:
        raise UnusableLibrary(f"{LIBRARY_NAME} cannot be loaded ({error})") from error
    loaded.kokoro_instruction_sets.restype = ctypes.c_char_p
    held, here = known["instruction_sets"], loaded.kokoro_instruction_sets().decode().split()
    if wanted != "auto" and wanted not in held:
        raise _refused(wanted, "the prebuilt operators do not hold it", held)
    if wanted != "auto" and wanted not in here:
        raise _refused(wanted, "this processor lacks it", here)
    if not here:
        raise UnusableLibrary(f"this processor has none of {', '.join(held)}")
    chosen = here[0] if wanted == "auto" else wanted
    loaded.kokoro_choose(chosen.encode())
    return library, f"prebuilt by {known.get('compiler', 'somebody')}, {chosen}"


def refuse_unless_auto(wanted: InstructionSet, because: str) -> None:
    """Refuse a wanted instruction set where there is no prebuilt library to choose it in.

    Raises
    ------
    SettingsError
        An instruction set is wanted, and no prebuilt library can be used; `because` says why.
    """
    if wanted != "auto":
        raise _refused(wanted, f"only prebuilt operators can be told so ({because})", ())


def _refused(wanted: str, because: str, allowed: list[str] | tuple[str, ...]) -> SettingsError:
    return SettingsError(
        f"KOKORO_INSTRUCTION_SET is {wanted}: {because}.",
        field="instruction_set",
        value=wanted,
        allowed=", ".join(["auto", *allowed]),
        mend="Unset KOKORO_INSTRUCTION_SET.",
    )
