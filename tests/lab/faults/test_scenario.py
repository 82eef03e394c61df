"""A scenario says what is put in where; one that is wrong is refused, with its file and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.faults import load_scenario, load_scenarios
from tests.lab.faults import made

FIELDS: dict[str, Any] = {
    "name": "odd",
    "title": "Odd",
    "seed": 1,
    "transports": ["sse"],
    "faults": [made.CUT],
}


def written(folder: Path, **changed: Any) -> Path:
    path = folder / "odd.json"
    path.write_text(json.dumps({**FIELDS, **changed}))
    return path


def test_every_fault_that_is_asked_for_has_a_scenario() -> None:
    kinds = {fault.kind for scenario in load_scenarios() for fault in scenario.faults}
    assert kinds == {
        *("provider_lost", "allocation_fails", "ballast", "g2p_stalls", "chunks_lost", "bursts"),
        "chunks_reordered",
        *("connection_cut", "connection_silent", "throttled", "disk_refuses"),
    }
    seams = {fault.seam for scenario in load_scenarios() for fault in scenario.faults}
    assert seams == {"provider", "g2p", "queue", "transport", "memory", "disk"}


def test_scenarios_are_loaded_by_name_and_by_file(tmp_path: Path) -> None:
    assert [one.name for one in load_scenarios("disk_full, connection_cut")] == [
        "disk_full",
        "connection_cut",
    ]
    assert load_scenario(written(tmp_path)).faults[0].kind == "connection_cut"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": "1"}, "seed"),
        ({"transports": []}, "transports"),
        ({"transports": ["smoke"]}, "transports.0"),
        ({"faults": []}, "faults"),
        ({"faults": [{"kind": "goblins"}]}, "faults.0"),
        ({"faults": [{**made.CUT, "often": 3}]}, "faults.0.connection_cut.often"),
        ({"faults": [{**made.CUT, "to_share": 1.5}]}, "faults.0.connection_cut.to_share"),
        ({"faults": [{**made.CUT, "from_share": 0.9}]}, "faults.0.connection_cut"),
        ({"faults": [{**made.BURSTS, "longest_s": 0.001}]}, "faults.0.bursts"),
        ({"faults": [{"kind": "provider_lost"}]}, "faults.0.provider_lost.at_window"),
        ({"transports": ["sse", "sse"]}, "scenario"),
        ({"transports": ["library"]}, "scenario"),
        ({"transports": ["http"], "faults": [made.LOST_ON_LINE]}, "scenario"),
        ({"comment": "x"}, "comment"),
        ({"name": "another"}, "name"),
    ],
)
def test_a_wrong_one_is_refused_with_file_and_field(
    tmp_path: Path, changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(ParameterError, match=r"odd\.json") as refused:
        load_scenario(written(tmp_path, **changed))
    assert refused.value.field == field


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text("{")
    with pytest.raises(ParameterError, match=r"odd\.json"):
        load_scenario(tmp_path / "odd.json")


def test_a_scenario_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ParameterError, match="provider_lost"):
        load_scenario("nothing")
