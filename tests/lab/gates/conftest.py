"""Golden clips: those of the repository, and a plan for the tiny voice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kokoro_lab.lab.gates.golden_files import ANOTHER, PLAN, SAME, GoldenFolder, load_golden
from kokoro_lab.lab.gates.golden_speaking import record_anew
from kokoro_lab.speech.engine import Engine

STRICT = {
    "length_share": 0,
    "word_s": 0,
    "beyond_words_s": 0,
    "fingerprint_share": 0.01,
    "loudness_lu": 0.1,
    "residual_peak_dbfs": -50,
}
LOOSE = STRICT | {"word_s": 0.03, "fingerprint_share": 0.2, "residual_peak_dbfs": None}


@pytest.fixture(scope="module")
def clips() -> GoldenFolder:
    return load_golden()


@pytest.fixture
def hummed(tmp_path: Path) -> GoldenFolder:
    """A plan of two cases for the tiny voice, of which nothing is recorded yet."""
    case = {"text": "one_clause", "voice": "hum", "variants": ["fp32"]}
    cases = [case | {"name": "low"}, case | {"name": "high", "voice": "hum_high", "streamed": True}]
    tolerances = {SAME: {"fp32": STRICT}, ANOTHER: {"fp32": LOOSE}}
    (tmp_path / PLAN).write_text(json.dumps({"cases": cases, "tolerances": tolerances}))
    return load_golden(tmp_path)


@pytest.fixture
def recorded(hummed: GoldenFolder, hum: Engine, tmp_path: Path) -> GoldenFolder:
    record_anew(hummed, list(hummed.planned), tmp_path / "evidence", lambda _: hum)
    return load_golden(tmp_path)
