"""`kokoro-lab results`: what it prints, what it leaves, and what it says where something cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kokoro_lab.__main__ import main
from tests.lab.results.planted import GATE, SECOND, plant


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return plant(tmp_path / "results")


def call(*arguments: str, code: int = 0, folder: str = "results") -> str:
    done = CliRunner().invoke(main, ["results", *arguments, "--results", folder])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


@pytest.mark.usefixtures("planted")
def test_the_list_has_a_row_a_run_the_newest_first() -> None:
    rows = call("list").splitlines()
    assert [row.split()[0] for row in rows] == ["run", *(f"aa{number:02}" for number in range(11, 0, -1))]
    assert "failed" in rows[-2]
    assert "fedcba9 dirty  11 s      stream true peak −0.4 dBTP (at most -1)" in rows[-2]
    assert len(call("list", "-n", "2").splitlines()) == 3
    assert call("list", "--verdict", "crashed", "--since", "2026-01-04") == "No run is so.\n"
    assert json.loads(call("list", "--json", "--until", "2026-01-02"))[0]["run_id"] == "20260101T100000Z-aa01"


@pytest.mark.usefixtures("planted")
def test_a_run_is_shown_with_margins_and_its_worst_clip_first() -> None:
    said = call("show", "30")
    checks = [row.split() for row in said[said.index("check ") :].splitlines()]
    assert checks[1] == [*"stream true peak FAIL −0.4 dBTP at most -1 −0.6 dB".split()]
    assert checks[2][:3] == ["loudest", "file", "pass"]
    assert said.index("audio/loud.wav") < said.index("audio/calm.wav")
    assert "Too loud." in said
    assert json.loads(call("show", "30", "--json"))["checks"][0]["name"] == "loudest_file_lufs"
    for short_id in ("aa03", "aa05", "aa06", "aa07", "aa08", "aa10"):
        call("show", short_id)


def test_a_comparison_names_the_regression_first_and_leaves_a_page(planted: Path) -> None:
    said = call("compare", "30~1", "30")
    rows = said[said.index("change  ") :].splitlines()
    assert rows[1].split()[:4] == ["fails", "now", "stream_true_peak_dbtp", "−1.2"]
    assert "parameter texts    2" in said
    assert (planted / "compared/30_loudness_gate-aa01-aa02.html").exists()
    figures = json.loads(call("compare", "aa01", "aa02", "--json"))["figures"]
    assert (figures[0]["name"], figures[0]["change"]) == ("stream_true_peak_dbtp", "fails now")


def test_the_index_is_opened_where_no_run_is_named(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    call("open")
    call("open", "30")
    pages = [planted / "index.html", planted / GATE / SECOND / "report.html"]
    assert opened == [page.as_uri() for page in pages]


def test_pruning_only_names_unless_told_and_spares_what_has_a_note(planted: Path) -> None:
    old = planted / GATE / "20260101T100000Z-aa01"
    call("note", "aa03", "the crash of Monday")
    said = call("prune", "--keep", "1")
    assert "keep    31_perceptual_gate  20260103T100000Z-aa03  it has a note: the crash of Monday" in said
    assert f"remove  {GATE}  20260101T100000Z-aa01  passed" in said
    assert old.exists()
    call("prune", "--keep", "1", "--yes", "--notebook", "31")
    assert old.exists(), "of another notebook"
    call("prune", "--keep", "1", "--yes")
    assert not old.exists()
    assert (planted / "31_perceptual_gate/20260103T100000Z-aa03").exists()
    assert "aa01" not in (planted / "index.html").read_text()
    call("note", "aa03")
    call("prune", "--older-than", "1", "--yes")
    assert not (planted / "31_perceptual_gate/20260103T100000Z-aa03").exists()
    left = {path.parent.name for path in planted.glob("*/*/")}
    assert left == {"41_soak", "42_faults"}, "under way; and what the checklist says that it cannot read"


def test_the_table_is_exported(planted: Path) -> None:
    assert "2 runs in all.csv" in call("export", "-o", "all.csv", "--notebook", "30", "--variant", "int8")
    assert len((planted.parent / "all.csv").read_text().splitlines()) == 3


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "99"), "There is no run '99'. Allowed: latest, a notebook, its number, or an id."),
        (("open", "aa03"), "aa03 left no report; it left crash.json."),
        (("open", "aa05", "--sound", "whole"), "There is no sound 'whole'. Allowed: half."),
        (("open", "aa01", "--sound"), "It is not said which sound is the worst. Allowed: calm, loud."),
        (("compare", "30", "41"), "measure different things"),
        (("prune",), "prune needs --keep, --older-than, or both."),
        (("export",), "export needs -o FILE or --mlflow URI."),
    ],
)
def test_what_cannot_be_is_said(arguments: tuple[str, ...], said: str) -> None:
    assert said in call(*arguments, code=2)


def test_a_folder_that_is_not_there_or_is_empty_is_said(tmp_path: Path) -> None:
    assert call("list", folder=str(tmp_path / "nowhere"), code=2).startswith("Error: There is no folder")
    said = call("show", "latest", folder=str(tmp_path), code=2)
    assert said.endswith("holds no run. Make one: kokoro-lab run 00_quickstart.\n")


def test_what_a_notebook_wrote_does_not_move_the_cursor(planted: Path) -> None:
    run = planted / "31_perceptual_gate/20260120T100000Z-aa20"
    run.mkdir()
    (run / "crash.json").write_text(json.dumps({"message": "gone\x1b\x07\u202e.", "parameters": {}}))
    for said in (call("list"), call("show", "aa20")):
        assert "gone." in said
