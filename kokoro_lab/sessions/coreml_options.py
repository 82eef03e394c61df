"""The eight options of ONNX Runtime's Core ML provider, checked before they are given to it.

ONNX Runtime distinguishes case in names and values and raises an error for unknown ones, but only on a Mac.
Here a wrong name or value is refused on any machine, with an error that says what is allowed. The list is
that of ONNX Runtime 1.31.1 (`coreml_options.cc`); the variables that set them are in `config`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args, get_origin

from kokoro_lab.config import COREML_NAMES, PREFIX, Settings
from kokoro_lab.errors import SettingsError

FOLDER = "a folder, or where one can be made"


def _taken_by(setting: str) -> tuple[str, ...]:
    """The values that an option takes, with ONNX Runtime's spelling of yes and no; none for a folder."""
    hint = Settings.model_fields[setting].annotation
    return ("0", "1") if hint is bool else get_args(hint) if get_origin(hint) is Literal else ()


OPTIONS = {name: _taken_by(setting) for setting, name in COREML_NAMES.items()}
"""Option, as ONNX Runtime spells it → its values, our default first. One option takes a folder, and is passed
only if it is set. ONNX Runtime's own default of ModelFormat is the older format, which takes fewer operators.
With ML Programs, RequireStaticInputShapes was seen to give wrong samples in 16 bits (onnxruntime#32569); a
graph with fixed shapes does not need it.
"""


def variable_of(option: str) -> str:
    """The environment variable that sets an option."""
    return next(PREFIX + setting.upper() for setting, name in COREML_NAMES.items() if name == option)


def coreml_options(given: Mapping[str, str]) -> dict[str, str]:
    """All options for the provider: the given ones, and our defaults for the rest.

    Raises
    ------
    SettingsError
        An option does not exist or does not take its value, or two options exclude each other.
    """
    for name, value in given.items():
        _require(name, value)
    options = {name: values[0] for name, values in OPTIONS.items() if values} | dict(given)
    if options["ProfileComputePlan"] == "1" and options["ModelFormat"] != "MLProgram":
        raise SettingsError(
            "ProfileComputePlan works for ML Programs alone: ONNX Runtime would ignore it.",
            field="ProfileComputePlan",
            value="1",
            mend="Set ModelFormat (KOKORO_COREML_MODEL_FORMAT) to MLProgram, or leave it out.",
        )
    return options


def _require(name: str, value: str) -> None:
    values = OPTIONS.get(name)
    if values is None:
        raise SettingsError(
            f"Core ML's provider has no option {name!r}.",
            field=str(name),
            value=value,
            allowed=", ".join(OPTIONS),
            mend=_nearest(str(name), tuple(OPTIONS)),
        )
    fits = value in values if values else _may_be_a_folder(value)
    if not fits:
        raise SettingsError(
            f"{name} cannot be {value!r}{'' if values else ': that is no folder'}.",
            field=name,
            value=value,
            allowed=", ".join(values) or FOLDER,
            mend=_nearest(str(value), values) or f"Set by {variable_of(name)}.",
        )


def _may_be_a_folder(value: str) -> bool:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return False
    there = next((path for path in (Path(value), *Path(value).absolute().parents) if path.exists()), None)
    return there is not None and there.is_dir()


def _nearest(word: str, words: tuple[str, ...]) -> str | None:
    """The option or value that was probably meant: ONNX Runtime distinguishes case, people who type seldom
    do."""
    folded = {candidate.casefold(): candidate for candidate in words}
    found = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.7)
    return f"Is {folded[found[0]]!r} meant?" if found else None
