"""English, American and British."""

from __future__ import annotations

from kokoro_lab.text.normalise.rules import Rule

RULES: tuple[Rule, ...] = ()
