"""Whoever knows one gate knows all: the same functions by the same names."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import ModuleType

import pytest

from kokoro_lab.lab.gates import (
    abx,
    checklist,
    false_alarms,
    golden,
    intelligibility,
    loudness,
    pauses,
    perceptual,
    performance,
    pronunciation,
    seams,
    word_errors,
)
from kokoro_lab.lab.gates.suite import measurements

GATES: dict[str, tuple[ModuleType, ...]] = {
    "13_pronunciation": (pronunciation,),
    "20_quantization_abx": (abx, intelligibility),
    "30_loudness_gate": (loudness,),
    "31_perceptual_gate": (perceptual,),
    "32_golden_regression": (golden,),
    "33_seams_and_clicks": (seams, pauses),
    "34_intelligibility": (word_errors,),
    "35_false_alarms": (false_alarms,),
    "60_performance_gate": (performance,),
    "90_verification_checklist": (checklist,),
}
RETURNS = {
    "measure": "pd.DataFrame",
    "judge": "list[Check]",
    "figures": "dict[str, float]",
    "controls": "list[NegativeControl]",
}


def test_every_gate_of_the_suite_is_known_here() -> None:
    assert {gate.name for gate in measurements("gates")} <= GATES.keys()


@pytest.mark.parametrize("module", [one for of_it in GATES.values() for one in of_it])
def test_a_gate_is_a_file_with_the_same_functions(module: ModuleType) -> None:
    assert {name: inspect.signature(getattr(module, name)).return_annotation for name in RETURNS} == RETURNS


@pytest.mark.parametrize(("notebook", "modules"), GATES.items(), ids=GATES)
def test_a_notebook_calls_them(notebook: str, modules: tuple[ModuleType, ...], repository: Path) -> None:
    cells = json.loads((repository / f"notebooks/{notebook}.ipynb").read_text("utf-8"))["cells"]
    code = "".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code")
    for module in modules:
        subject = module.__name__.rpartition(".")[2]
        assert [name for name in RETURNS if f"{subject}.{name}(" not in code] == []
