"""Puts compiled operators into a wheel if scripts/wheels/build.py says where they are; else it stays pure."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledOperators(BuildHookInterface):  # type: ignore[misc]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("KOKORO_WHEEL_OPERATORS")
        if folder and version == "standard":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{os.environ['KOKORO_WHEEL_TAG']}"
            build_data["force_include"][folder] = "kokoro_lab/native/prebuilt"
