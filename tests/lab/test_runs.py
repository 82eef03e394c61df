"""Notebooks as programs: evidence is kept, and the exit code tells the truth."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.config import settings
from kokoro_lab.lab.gates import checklist, evidence, performance
from kokoro_lab.lab.gates.checklist import read_lines
from kokoro_lab.lab.gates.suite import measurements
from kokoro_lab.lab.notebooks import notebook_names
from kokoro_lab.lab.report.header import MARK
from kokoro_lab.lab.report.outputs import text_of
from kokoro_lab.lab.runs import BLAS_THREADS, run_notebook
from tests.lab.report.test_page import MOST_BYTES, Page, outside
from tests.toy_notebooks import PARAMETERS, make_repository, write

IMPORTS = """\
from pathlib import Path
from typing import Any

from kokoro_lab.lab import results
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.speech.engine import Engine
from kokoro_lab.model.decoder import WholeGraph
from kokoro_lab.lab.tables import shown
from tests import tiny_voice"""

BODY = """\
run = results.open_run("01_toy", run_dir, {"count": count})
engine = tiny_voice.engine(run.folder / "hum.onnx")
clip = engine.synthesize("Ah.", voice="hum")
run.keep_audio("ah", clip)
clip"""

CONTROLS = """\
import warnings
from tqdm import tqdm
for _ in tqdm(range(3), desc="clips"):
    pass
warnings.warn("The voice is hoarse.")
controls = [results.NegativeControl("a click", caught=True)]
shown(controls)"""

VERDICT = """\
checks = [results.Check("count", count, high=5)]
run.finish(engine, checks=checks, controls=controls, figures={"x_s": 1.0})"""


def html_of(cell: dict[str, Any]) -> list[str]:
    """What a cell has shown as HTML."""
    shown = (output.get("data", {}).get("text/html") for output in cell.get("outputs", []))
    return [text_of(html) for html in shown if html]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two notebooks: one on the tiny voice, one that crashes."""
    make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    write(tmp_path / "notebooks/01_toy.ipynb", PARAMETERS, IMPORTS, BODY, CONTROLS, VERDICT)
    write(tmp_path / "notebooks/02_crash.ipynb", 'run_dir: str = ""  # where', "1 / 0")
    return tmp_path


@pytest.mark.notebook
def test_a_passed_run_leaves_all_that_the_design_lists(lab: Path) -> None:
    outcome = run_notebook("01_toy", {"count": "4"}, progress=False)
    assert outcome.verdict == "passed", outcome.message
    folder = outcome.run_dir
    assert folder.parent == lab / "results" / "01_toy"
    assert {p.name for p in folder.iterdir()} >= {"executed.ipynb", "report.html", "result.json", "audio"}
    assert outcome.record["parameters"] == {"count": 4}
    assert (folder / "audio/ah.wav").stat().st_size > 44
    report = (folder / "report.html").read_text()
    assert "<audio" in report
    assert "tiny_voice" not in report  # readers get tables and sound, not code
    page = Page(report)
    assert list(outside(page.addresses)) == []
    assert report.count(MARK) == 1, "what the last cell shows stands at the top alone"
    assert report.index("≤ 5") < report.index("<audio")
    assert "NegativeControl(" not in report
    assert report.count(">caught</td>") == 1, "in the header"
    assert report.count(">a click</") == 2, "and where the notebook shows its controls"
    assert "it/s]" not in report
    assert report.index('class="messages"') < report.index("The voice is hoarse.")


@pytest.mark.notebook
def test_a_failed_gate_keeps_its_evidence(lab: Path) -> None:
    outcome = run_notebook("01_toy", {"count": 6}, progress=False)
    assert outcome.verdict == "failed"
    assert "count" in outcome.message
    assert outcome.record["verdict"] == "failed"
    assert (outcome.run_dir / "executed.ipynb").exists()
    assert (outcome.run_dir / "report.html").exists()
    assert f"01_toy/{outcome.run_dir.name}/report.html" in (lab / "results/index.html").read_text()
    executed = json.loads((outcome.run_dir / "executed.ipynb").read_text())
    shown = [html for cell in executed["cells"] for html in html_of(cell)]
    assert any(html.startswith(MARK) for html in shown), "it is shown before it is raised"
    report = (outcome.run_dir / "report.html").read_text()
    assert "not within: count" in report
    assert "GateFailed" not in report


@pytest.mark.notebook
def test_a_crash_is_not_a_verdict(lab: Path) -> None:
    outcome = run_notebook("02", progress=False)
    assert outcome.verdict == "crashed"
    assert "ZeroDivisionError" in outcome.message
    assert outcome.record == {}
    assert "division" in json.loads((outcome.run_dir / "crash.json").read_text())["message"]
    report = (outcome.run_dir / "report.html").read_text()
    assert "Crashed" in report
    assert "ZeroDivisionError: division by zero. It came to step 3 of 3, under “Toy”." in report


@pytest.mark.notebook
def test_a_result_that_cannot_be_read_is_a_crash_that_names_it(lab: Path) -> None:
    write(
        lab / "notebooks/04_halves.ipynb",
        'run_dir: str = ""  # where',
        "from pathlib import Path; Path(run_dir, 'result.json').write_text('{')",
    )
    outcome = run_notebook("04", progress=False)
    assert outcome.verdict == "crashed"
    assert "result.json cannot be read" in outcome.message
    assert outcome.record == {}


@pytest.mark.notebook
def test_a_process_that_dies_is_a_crash(lab: Path) -> None:
    write(lab / "notebooks/03_dies.ipynb", 'run_dir: str = ""  # where', "import os; os._exit(9)")
    outcome = run_notebook("03", progress=False)
    assert outcome.verdict == "crashed"
    assert "died" in outcome.message
    assert "The process of the notebook died." in (outcome.run_dir / "report.html").read_text()


@pytest.mark.notebook
def test_notebooks_that_begin_at_once_cannot_take_each_others_ports(lab: Path) -> None:
    # Ports are chosen before the kernel is there, and free then; a file of its own cannot be taken
    says = "from ipykernel.connect import get_connection_info; reached = get_connection_info(unpack=True)"
    tells = "Path(run_dir, 'reached').write_text(f'{reached[\"transport\"]} {reached[\"ip\"]}')"
    write(lab / "notebooks/03_reached.ipynb", PARAMETERS, IMPORTS, says, tells)
    outcomes = [run_notebook("03", progress=False) for _ in range(2)]
    reached = {(outcome.run_dir / "reached").read_text() for outcome in outcomes}
    assert len(reached) == 2
    assert all(address.startswith("ipc ") for address in reached)


@pytest.mark.notebook
@pytest.mark.parametrize("wanted", [None, "3"])
def test_numpys_threads_leave_the_cores_to_the_engine_unless_told_otherwise(
    lab: Path, monkeypatch: pytest.MonkeyPatch, wanted: str | None
) -> None:
    monkeypatch.delenv(BLAS_THREADS, raising=False)
    if wanted:
        monkeypatch.setenv(BLAS_THREADS, wanted)
    says = f"import os; Path(run_dir, 'threads').write_text(os.environ['{BLAS_THREADS}'])"
    write(lab / "notebooks/03_threads.ipynb", PARAMETERS, IMPORTS, says)
    assert (run_notebook("03", progress=False).run_dir / "threads").read_text() == (wanted or "1")
    assert os.environ.get(BLAS_THREADS) == wanted


# The project's own notebooks, on the real weights, in their fast mode

FAST = {one.name: one for one in measurements() if not one.benchmark}


def test_every_notebook_has_a_fast_mode() -> None:
    assert set(FAST) == set(notebook_names())


def with_a_report_of_tests(folder: Path) -> Path:
    """A folder of results in which one line of the checklist has something to go by."""
    (folder / evidence.TESTS).parent.mkdir(parents=True)
    case = '<testcase classname="tests.text.test_sanitise" name="test_offsets_survive"/>'
    (folder / evidence.TESTS).write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>")
    return folder


@pytest.mark.model
@pytest.mark.notebook
def test_the_checklist_fails_where_nothing_was_measured(tmp_path: Path) -> None:
    outcome = run_notebook(checklist.NAME, {"folder": str(tmp_path / "none")}, progress=False)
    assert outcome.verdict != "passed"
    assert outcome.record["failures"] == ["FAIL  1 ≤ lines_with_a_result_count = 0"]


@pytest.mark.model
@pytest.mark.notebook
@pytest.mark.parametrize("name", FAST)
def test_the_notebook_passes(name: str, tmp_path: Path) -> None:
    parameters = dict(FAST[name].fast)
    if name == checklist.NAME:  # it judges what others have left, of which there need be nothing here
        parameters["folder"] = str(with_a_report_of_tests(tmp_path))
    outcome = run_notebook(name, parameters, progress=False)
    assert outcome.verdict == "passed", f"{outcome.message} {outcome.record.get('failed lines', '')}"
    result = outcome.record
    assert result["checks"]
    # What the checklist will look for
    assert FAST[name].was_asked(result["parameters"], fast=True)
    assert result["variant"] == (FAST[name].variant or settings().variant)
    report = (outcome.run_dir / "report.html").read_text("utf-8")
    assert report.count(MARK) == 1
    assert list(outside(Page(report).addresses)) == []
    assert len(report) < MOST_BYTES
    wanted = {one.figure for line in read_lines() for one in line.evidence if one.measured == name}
    if FAST[name].alone:  # in full: fast, no time decides, and nothing is said of them
        wanted -= {performance.MOST}
    assert wanted <= {one["name"] for one in result["checks"]} | set(result["figures"]) | {evidence.CAUGHT}
