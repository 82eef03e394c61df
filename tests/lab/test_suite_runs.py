"""`run gates` and `run checklist`: all is run, whatever becomes of one, and the exit code tells the truth."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as Called

from kokoro_lab.__main__ import main
from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates import checklist, evidence
from kokoro_lab.lab.gates.checklist import Evidence, Line
from kokoro_lab.lab.gates.evidence import Now
from kokoro_lab.lab.gates.suite import Measurement
from kokoro_lab.lab.results import Result
from kokoro_lab.lab.suite_runs import about, run_missing, verdict
from tests import toy_notebooks


def row(name: str, count: int = 3, **more: Any) -> dict[str, Any]:
    modes = {"fast": {"count": count}, "fast_s": 2, "full": {"count": count + 10}, "full_s": 300}
    return {"name": name, "guards": f"{name} holds"} | modes | more


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    toy_notebooks.make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return tmp_path


def suite(lab: Path, *gates: dict[str, Any], notebooks: tuple[dict[str, Any], ...] = ()) -> None:
    (lab / "notebooks/suite.json").write_text(json.dumps({"gates": gates, "notebooks": notebooks}))


def call(*arguments: str) -> Called:
    return CliRunner().invoke(main, ["run", *arguments])


def run_notebook(name: str, parameters: dict[str, Any], progress: bool, place: int = 0) -> Result:
    """Ends as the name says, with what `runs.run_notebook` would leave."""
    if name == "02_gone":
        raise ParameterError("There is no notebook '02_gone'.")
    folder = Path.cwd() / "results" / name / "20260101T000000Z-aaaa"
    count = 6 if name == "04_bad" else 3
    checks = [{"name": "count", "value": count, "low": None, "high": 5, "passed": count <= 5}]
    controls = [{"name": "a click", "caught": name != "05_deaf"}]
    verdict = {"01_crash": "crashed", "03_good": "passed"}.get(name, "failed")
    record: dict[str, Any] = {}
    if verdict != "crashed":
        record = {"verdict": verdict, "checks": checks, "controls": controls}
        write_json(folder / "result.json", record)
        (folder / "report.html").write_text("<p>What was heard</p>")
    message = {"crashed": "ZeroDivisionError: division by zero", "failed": "count = 6"}.get(verdict, "")
    return Result(name, parameters, folder, verdict, message, 1.0, record)


def test_a_gate_that_crashes_does_not_stop_the_others(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite(lab, row("01_crash"), row("02_gone"), row("03_good"), row("04_bad"), row("05_deaf"))
    monkeypatch.setattr("kokoro_lab.lab.runs.run_notebook", run_notebook)
    done = call("gates", "--fast", "--jobs", "1", "--json")
    assert done.exit_code == 3
    found = json.loads(done.stdout)
    verdicts = {one["gate"]: one["verdict"] for one in found["gates"]}
    assert verdicts == {
        "01_crash": "crashed",
        "02_gone": "crashed",
        "03_good": "passed",
        "04_bad": "failed",
        "05_deaf": "failed",
    }
    crash, gone, good, bad, deaf = found["gates"]
    assert "ZeroDivisionError" in crash["message"]
    assert "There is no notebook" in gone["message"]
    assert (bad["failed"], bad["missed"]) == (["count"], [])
    assert (deaf["failed"], deaf["missed"]) == ([], ["a click"])
    assert (lab / good["report"]).is_file()
    assert (found["verdict"], found["fast"]) == ("crashed", True)
    (kept,) = (lab / "results/gates").iterdir()
    assert json.loads((kept / "summary.json").read_text()) == found
    assert f"gates/{kept.name}/summary.html" in (lab / "results/index.html").read_text()
    for written in (kept / "summary.md", kept / "summary.html"):
        assert all(name in written.read_text("utf-8") for name in verdicts)


@pytest.mark.test_all
@pytest.mark.notebook
def test_all_gates_are_told_and_tabled(lab: Path) -> None:
    suite(lab, row("03_good"))
    toy_notebooks.write_gate(lab, "03_good")
    done = call("gates", "--fast")
    assert done.exit_code == 0, done.output
    assert "1 to run, about 2 s: 03_good." in done.stderr
    assert "1 of 1: 03_good, about 2 s: 03_good holds" in done.stderr
    for heading in ("gate", "verdict", "checks failed", "controls missed", "seconds", "report"):
        assert heading in done.stdout
    assert "passed; kept in" in done.stdout


MEETS = """\
import pathlib, time
here, other = (pathlib.Path("../" + name) for name in ({name!r}, {other!r}))
here.touch()
until = time.monotonic() + 60
while not other.exists() and time.monotonic() < until: time.sleep(0.02)
assert other.exists(), "the other one never began"
"""
"""A cell that ends once that of another notebook has begun, and fails if it does not."""


@pytest.mark.test_all
@pytest.mark.notebook
def test_two_gates_at_a_time_and_what_measures_time_alone(lab: Path) -> None:
    suite(lab, row("01_time", alone=["fast"]), row("02_gone"), row("03_one"), row("04_two", count=4))
    for name, other in (("03_one", "04_two"), ("04_two", "03_one")):
        code = MEETS.format(name=name, other=other), toy_notebooks.BODY.format(name=name)
        toy_notebooks.write(lab / f"notebooks/{name}.ipynb", toy_notebooks.PARAMETERS, *code)
    toy_notebooks.write_gate(lab, "01_time")
    done = call("gates", "--fast", "--json")
    assert done.exit_code == 3, done.output
    found = [(one["gate"], one["verdict"], one["missed"]) for one in json.loads(done.stdout)["gates"]]
    assert found == [
        ("01_time", "passed", []),
        ("02_gone", "crashed", []),
        ("03_one", "passed", []),
        ("04_two", "failed", ["a click"]),
    ]
    begun = done.stderr.index("4 of 4: 01_time")
    ends = (("02_gone", "crashed"), ("03_one", "passed"), ("04_two", "failed"))
    assert all(done.stderr.index(f"{name}: {verdict} in") < begun for name, verdict in ends)


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ((), "failed"),
        (("passed", "passed"), "passed"),
        (("passed", "failed"), "failed"),
        (("failed", "crashed", "passed"), "crashed"),
    ],
)
def test_one_verdict_of_all(verdicts: tuple[str, ...], said: str) -> None:
    assert verdict([Result("01_a", {}, None, one) for one in verdicts]) == said


@pytest.mark.parametrize(
    "arguments",
    [
        ("gates", "-p", "count=3"),
        ("checklist", "--sweep", "count=3,4"),
        ("gates", "--cluster", "tcp://127.0.0.1:8786"),
        ("checklist", "--jobs", "2"),
        ("03_good", "--list", "-p", "count=3"),
        ("--fast",),
    ],
)
def test_options_that_would_do_nothing_are_refused(lab: Path, arguments: tuple[str, ...]) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert "cannot be given" in done.output


def test_how_long_it_takes_is_said() -> None:
    one = Measurement("01_a", "", {}, {}, 50, 3000, kind="gates")
    alone = Measurement("60_b", "", {}, {}, 20, 200, alone=("full",), kind="gates")
    assert about([one, one], True) == "2 to run, about 100 s: 01_a, 01_a."
    assert about([one, one, alone], True, jobs=2) == "3 to run, about 84 s: 01_a, 01_a, 60_b."
    assert about([one, one, alone], False, jobs=2) == "3 to run, about 73 min: 01_a, 01_a, 60_b."
    assert about([one], False) == "1 to run, about 50 min: 01_a."
    assert about([], True) == "Nothing is missing."


GATE = Line("audio", "D1", "It counts.", (Evidence("03_good", "count", high=5),))
BENCH = Line("performance", "O3", "It is soon.", (Evidence("soon", "summary > x", high=5),))


@pytest.fixture
def committed(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toy repository under git, whose results are of the commit and of weights that nobody names."""
    (lab / ".gitignore").write_text("results/\n.ipython/\n")
    toy_notebooks.write_gate(lab, "03_good")
    toy_notebooks.write_gate(lab, checklist.NAME)
    name = lab / f"notebooks/{checklist.NAME}.ipynb"
    name.write_text(name.read_text().replace("deep: bool", "fast: bool"))
    suite(lab, row("03_good"))
    git = ["git", "-c", "user.name=toy", "-c", "user.email=toy@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Toy"]):
        subprocess.run([*git, *words], cwd=lab, check=True)
    real = evidence.now
    monkeypatch.setattr(evidence, "now", lambda: Now(real().commit, "int8", {"int8": None}))  # type: ignore[dict-item]
    monkeypatch.setattr(checklist, "read_lines", lambda: [GATE])
    return lab


@pytest.mark.notebook
def test_the_checklist_runs_what_is_missing_and_nothing_twice(committed: Path) -> None:
    first = call("checklist", "--fast")
    assert first.exit_code == 0, first.output
    assert "1 to run, about 2 s: 03_good." in first.stderr
    assert len(list((committed / "results/03_good").iterdir())) == 1
    assert f"{checklist.NAME}: passed" in first.stdout
    assert "checklist.html" in first.stdout
    said: list[str] = []
    run_missing(True, progress=False, say=said.append)
    assert said == ["Nothing is missing."]
    assert len(list((committed / "results/03_good").iterdir())) == 1


def test_what_crashes_does_not_keep_the_rest_from_being_run(
    committed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    gone = Line("audio", "D1", "It is gone.", (Evidence("02_gone", "count", high=5),))
    worse = Line("audio", "D1", "It is worse.", (Evidence("04_bad", "count", high=5),))
    suite(committed, row("02_gone"), row("04_bad"))
    monkeypatch.setattr(checklist, "read_lines", lambda: [worse, gone])
    monkeypatch.setattr("kokoro_lab.lab.runs.run_notebook", run_notebook)
    run_missing(True, progress=False, say=said.append)
    assert said[1:] == [
        "1 of 2: 02_gone, about 2 s: 02_gone holds",
        "  crashed: ParameterError: There is no notebook '02_gone'.",
        "2 of 2: 04_bad, about 2 s: 04_bad holds",
        "  failed: count = 6",
    ]


def test_a_benchmark_is_run_by_the_command_that_one_types(
    committed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    real = subprocess.run

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if command[0] == "git":
            return real(command, **options)
        ran.append(command)
        return subprocess.CompletedProcess(command, 1, "many lines\nit is slow\n")

    benchmarks = [row("soon") | {"fast": {"trials": 3, "http": True}, "full": {"trials": 30}}]
    (committed / "notebooks/suite.json").write_text(json.dumps({"benchmarks": benchmarks}))
    monkeypatch.setattr(checklist, "read_lines", lambda: [BENCH])
    monkeypatch.setattr("kokoro_lab.lab.suite_runs.subprocess.run", run)
    said: list[str] = []
    run_missing(True, progress=False, say=said.append)
    assert [command[1:] for command in ran] == [["-m", "kokoro_lab", "bench", "--trials", "3", "--http"]]
    assert said[-1] == "  exit code 1; it is slow"
