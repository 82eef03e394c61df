"""The wheel installed into other places than a checkout's own environment."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def release() -> ModuleType:
    """`scripts/check_release.py`, which builds the wheel and installs it, and is no part of the package."""
    if "check_release" not in sys.modules:
        spec = importlib.util.spec_from_file_location("check_release", ROOT / "scripts/check_release.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["check_release"] = module  # its dataclass looks itself up
        spec.loader.exec_module(module)
    return sys.modules["check_release"]


def installed_into(folder: Path, built: Path) -> Path:
    """The program of the wheel, built in `built` and installed alone into a new environment at `folder`.

    The packages that it needs are borrowed from the environment of this run.
    """
    wheel, _ = release().build(built)
    scripts: Path = release().installed(wheel, folder)
    return scripts / "kokoro-lab"
