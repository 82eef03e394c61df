"""Measured costs outlive a start, for a time and as long as nothing has changed that they depend on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.sessions.cost_cache import (
    MOST_ENTRIES,
    Conditions,
    CostCache,
    CostCacheError,
    SegmentCost,
    conditions_here,
)

COSTS = {"cpu": SegmentCost(((20, 0.05), (60, 0.1))), "coreml": SegmentCost(((20, 0.08), (60, 0.09)))}
HERE = conditions_here(EngineConfig(), "ab12")


def test_a_cost_lies_between_those_measured_and_grows_in_proportion_beyond_them() -> None:
    cost = SegmentCost(((20, 0.05), (60, 0.1), (100, 0.3)))
    assert cost.seconds(5) == 0.05
    assert [cost.seconds(n) for n in (20, 60, 100)] == pytest.approx([0.05, 0.1, 0.3])
    assert cost.seconds(40) == pytest.approx(0.075)
    assert cost.seconds(200) == pytest.approx(0.6)


def test_costs_are_found_again_until_they_are_too_old(tmp_path: Path) -> None:
    cache = CostCache(tmp_path, ttl_s=100)
    assert cache.find(HERE).reason == "nothing was measured before"
    cache.keep(HERE, COSTS, now_s=1_000)
    assert CostCache(tmp_path, ttl_s=100).find(HERE, now_s=1_099).costs == COSTS
    assert not cache.find(HERE, now_s=1_100).costs
    assert "believed for 100 s" in cache.find(HERE, now_s=1_100).reason
    assert not cache.find(HERE, now_s=999).costs, "a clock that was set back"
    assert not CostCache(tmp_path, ttl_s=0).find(HERE, now_s=1_000).costs


@pytest.mark.parametrize("changed", ["model_sha256", "onnxruntime", "system", "cpu"])
def test_another_model_runtime_system_or_processor_is_measured_anew(tmp_path: Path, changed: str) -> None:
    cache = CostCache(tmp_path, ttl_s=100)
    cache.keep(HERE, COSTS, now_s=0)
    found = cache.find({**HERE, changed: "another"}, now_s=1)
    assert not found.costs
    assert found.reason == f"measured with another {changed}"


def test_options_that_change_what_a_provider_costs_are_conditions_and_others_are_not() -> None:
    def of(**options: object) -> Conditions:
        return conditions_here(EngineConfig(**options), "ab12")  # type: ignore[arg-type]

    assert of(threads=7) != HERE
    assert of(window_frames=200) != HERE
    assert of(variant="fp32") != HERE
    assert of(provider="cpu", provider_choice="measured", cost_ttl_s=5.0) == HERE


def test_what_was_measured_under_other_conditions_stays(tmp_path: Path) -> None:
    cache = CostCache(tmp_path, ttl_s=100)
    for number in range(2 * MOST_ENTRIES):
        cache.keep({**HERE, "cpu": f"chip {number}"}, COSTS, now_s=number)
    cache.keep({**HERE, "cpu": "chip 31"}, {"cpu": COSTS["cpu"]}, now_s=50)
    assert set(cache.find({**HERE, "cpu": "chip 31"}, now_s=51).costs) == {"cpu"}
    assert set(cache.find({**HERE, "cpu": "chip 20"}, now_s=51).costs) == {"cpu", "coreml"}
    assert len(json.loads(cache.path.read_text())["entries"]) == MOST_ENTRIES


@pytest.mark.parametrize(
    "held",
    [
        "{",
        "[]",
        '{"format": 2, "entries": []}',
        '{"format": 1, "entries": [{"measured_at_s": 0, "costs": {}}]}',
        '{"format": 1, "entries": [{"conditions": {}, "measured_at_s": 0, "costs": {"cpu": [[20, -1]]}}]}',
        '{"format": 1, "entries": [{"conditions": {}, "measured_at_s": 0, "costs": {"cpu": []}}]}',
        '{"format": 1, "entries": [{"conditions": {}, "measured_at_s": null, "costs": {}}]}',
        b"\xff\xfe\x00",
    ],
)
def test_a_damaged_file_is_named_and_written_over(tmp_path: Path, held: str | bytes) -> None:
    cache = CostCache(tmp_path, ttl_s=100)
    cache.path.write_bytes(held if isinstance(held, bytes) else held.encode())
    with pytest.raises(CostCacheError, match="cannot be read") as damaged:
        cache.find(HERE)
    assert damaged.value.value == str(cache.path)
    cache.keep(HERE, COSTS, now_s=0)
    assert cache.find(HERE, now_s=1).costs == COSTS
    assert [path.name for path in tmp_path.iterdir()] == [cache.path.name], "nothing half-written is left"
