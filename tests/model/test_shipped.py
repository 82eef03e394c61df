"""Fitted files that ship with the package, and samples that are not finite: errors that say what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import IntegrityError, SynthesisError
from kokoro_lab.extras import shipped_arrays
from kokoro_lab.graphs.quantise import Calibration
from kokoro_lab.model.decoder import SegmentRequest, WholeGraph
from kokoro_lab.model.predictor import PREDICTOR_FILE, StatisticsPredictor
from tests import tiny_voice

RANGES = PREDICTOR_FILE.parents[1] / "graphs" / "ranges.npz"


def test_they_are_read_as_they_are() -> None:
    with np.load(RANGES) as stored:
        found = shipped_arrays(RANGES)
        assert set(found) == set(stored.files)
        assert all((found[name] == stored[name]).all() for name in stored.files)


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "gone", "another kind"])
def test_a_damaged_one_is_named_with_the_mend(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "ranges.npz"
    content = bytearray(RANGES.read_bytes())
    content[200_000] ^= 0xFF
    kinds = {"flipped": bytes(content), "cut": bytes(content[:90_000]), "empty": b"", "another kind": b"[]"}
    if damage != "gone":
        path.write_bytes(kinds[damage])
    with pytest.raises(IntegrityError, match=r"ranges\.npz cannot be read") as caught:
        Calibration.load(path)
    assert "install kokoro-lab again" in str(caught.value.mend)


def test_a_damaged_predictor_is_named(tmp_path: Path) -> None:
    for file in PREDICTOR_FILE.parent.glob(f"{PREDICTOR_FILE.stem}*.npz"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    part = tmp_path / f"{PREDICTOR_FILE.stem}_2.npz"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 0xFF
    part.write_bytes(content)
    with pytest.raises(IntegrityError, match=part.name):
        StatisticsPredictor.load(tmp_path / PREDICTOR_FILE.name)


@pytest.mark.parametrize(
    ("name", "mend"), [("hum.onnx", "doctor --deep"), ("hum.fp16.onnx", "Upstream's fp16 model does this")]
)
def test_samples_that_are_not_finite_blame_upstreams_fp16_only_where_it_speaks(
    name: str, mend: str, tmp_path: Path
) -> None:
    decoder = WholeGraph(tiny_voice.build(tmp_path / name), EngineConfig(variant="fp32", threads=1))
    style = np.zeros((1, 256), np.float32)
    style[0, 0] = np.nan
    with pytest.raises(SynthesisError, match="not finite") as caught:
        list(decoder.decode(SegmentRequest([5], style)).blocks)
    assert mend in str(caught.value.mend)
    assert ("fp16" in str(caught.value.mend)) == ("fp16" in name)
