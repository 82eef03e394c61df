"""A reader sees at the top of a report what became of a run, how near it was, and what was run."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.lab.report.header import MARK, header_html, title_of
from kokoro_lab.lab.results import Check, Finished, Result, open_run, read_result
from kokoro_lab.lab.results.records import ranked, room
from kokoro_lab.lab.results.units import number

HOSTILE = "<script>alert('a&b')</script>"
RAN: dict[str, Any] = {
    "variant": "int8",
    "requested_provider": "coreml",
    "active_provider": "CPUExecutionProvider",
}
CHECKS = [
    Check("chunk_faults_count", 0, high=0),
    Check("quietest_file_lufs", -16.2, low=-17, high=-15),
    Check("true_peak_dbtp", -1.05, high=-1),
]


def result(record: dict[str, Any], verdict: str = "passed", **about: Any) -> Result:
    return Result("99_test", record.get("parameters", {}), None, verdict, record=record, **about)


def checks(*found: Check) -> dict[str, Any]:
    names = ("name", "value", "low", "high")
    return {"checks": [{name: getattr(one, name) for name in names} for one in found]}


def finished(folder: Path, **given: Any) -> Finished:
    return open_run("99_test", folder, given.pop("parameters", {})).finish(RAN, **{"checks": CHECKS} | given)


def words(html: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", html).split())


@pytest.mark.parametrize(
    ("check", "share"),
    [
        (Check("x", 9.0, high=10.0), 0.1),
        (Check("x", -1.2, high=-1.0), 0.2),
        (Check("x", -16.5, low=-17, high=-15), 0.5),
        (Check("x", 12.0, low=10.0), 0.2),
        (Check("x", 11.0, high=10.0), -0.1),
        (Check("x", 5, high=5), 0.0),
        (Check("x", 0, high=0), math.inf),
        (Check("x", 2, high=0), -2.0),
        (Check("x", 6, low=6, high=6), math.inf),
        (Check("x", 1.0), math.inf),
        (Check("x", math.nan, high=1), -math.inf),
    ],
)
def test_a_margin_is_a_share_of_its_limit(check: Check, share: float) -> None:
    assert room(check) == pytest.approx(share)


def test_what_failed_is_first_and_then_what_is_nearest_to_its_limit() -> None:
    lost = [Check("beyond", 12, high=10), Check("unmeasured", math.nan, low=0)]
    assert [one.name for one in ranked([*CHECKS, *lost])] == [
        *("unmeasured", "beyond", "true_peak_dbtp", "quietest_file_lufs", "chunk_faults_count"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-16.026090887618658, "−16.03"),
        (0.098333, "0.09833"),
        (141_600, "141,600"),
        (1234.56, "1,235"),
        (4.69e-7, "4.69e−07"),
        (math.nan, "not measured"),
    ],
)
def test_a_figure_has_four_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_a_row_has_words_figure_unit_limit_and_margin() -> None:
    said = words(header_html(result(checks(*CHECKS))))
    assert "true peak −1.05 dBTP ≤ −1 0.05 passed" in said
    assert "quietest file −16.2 LUFS −17 to −15 0.8 passed" in said
    assert "chunk faults 0 ≤ 0 – passed" in said
    assert "Passed 3 of 3 figures are within their limits." in said


def test_what_failed_and_what_was_missed_stand_in_the_banner() -> None:
    record = checks(Check("true_peak_dbtp", -0.5, high=-1)) | {
        "controls": [{"name": "3 dB louder", "caught": True}, {"name": "a click", "caught": False}]
    }
    html = header_html(result(record, "failed"))
    said = words(html)
    assert "Failed 0 of 1 figures are within their limits; not within: true peak." in said
    assert "1 of 2 faults put in on purpose were caught; missed: a click." in said
    assert said.index("a click missed") < said.index("3 dB louder caught")
    assert "<details open>" in html, "what was missed is not folded away"


def test_nothing_measured_is_said() -> None:
    assert "Failed Nothing was measured." in words(header_html(result({}, "failed")))


def test_a_verdict_that_rests_on_little_says_so_in_another_colour(tmp_path: Path) -> None:
    folder = tmp_path / "99_test/1"
    found = finished(folder, remarks=["41 of 46 lines not measured"])
    assert found["remarks"] == ["41 of 46 lines not measured"]
    html = found._repr_html_()
    assert "Passed; 41 of 46 lines not measured" in html
    assert html.startswith(f'{MARK} qualified"')
    read = read_result(folder)
    assert read is not None
    assert title_of(read).startswith("99_test: passed; 41 of 46 lines not measured, 20")


@pytest.mark.parametrize("verdict", ["crashed", "interrupted"])
def test_a_run_without_an_end_says_why_and_how_far_it_came(verdict: str, tmp_path: Path) -> None:
    (tmp_path / "crash.json").write_text(json.dumps({"verdict": verdict, "message": "ZeroDivisionError: x"}))
    read = read_result(tmp_path)
    assert read is not None
    html = header_html(read, came_to="It came to step 3 of 9.")
    assert f"{verdict.capitalize()} ZeroDivisionError: x. It came to step 3 of 9." in words(html)
    assert 'href="crash.json"' in html


def test_what_was_run_on_what_and_when(tmp_path: Path) -> None:
    found = finished(tmp_path, parameters={"voice": "af_heart"})
    found["git"] = {"commit": "c0ffee" * 6, "dirty": True}
    said = words(found._repr_html_())
    assert "voice af_heart" in said
    assert "variant int8 provider CPUExecutionProvider (coreml was asked for)" in said
    assert "commit c0ffeec0ffee, with changes that are not committed" in said
    assert f"{found['machine']['cores']} cores" in said
    assert f"begun {found['started_at'][:10]}" in said
    assert f"run {tmp_path.name}" in said
    found["git"] = {"commit": None, "dirty": None}
    assert "commit" not in words(found._repr_html_())


def test_parameters_that_are_not_the_notebooks_own_are_marked() -> None:
    given = {"text": "Hello.", "voice": "af_heart", "unknown": 1}
    html = header_html(Result("00_quickstart", given, None, "passed"))
    changed = re.findall(r'<div class="changed"><dt>(\w+)</dt>', html)
    assert changed == ["text"]
    assert "Hello. instead of Hello there." in words(html)


def test_tables_and_sounds_are_linked_from_where_the_header_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "results/99_test/1"
    run = open_run("99_test", folder)
    for place in range(5):
        (folder / f"audio/a#{place}.wav").write_bytes(b"")
    run._tables.append({"name": "streams", "file": "tables/streams.csv", "row_count": 12, "units": {}})
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    html = run.finish(RAN, checks=CHECKS)._repr_html_()
    base = "../results/99_test/1/"
    assert f'<a href="{base}tables/streams.csv">streams</a> <span class="unit">12 rows</span>' in html
    assert f'<a href="{base}result.json">' in html
    assert html.count('preload="none"') == 5
    assert f'src="{base}audio/a%230.wav"' in html
    assert "<details>\n<summary><h2>Sounds</h2> 5" in html, "many are folded"


def test_no_text_of_a_run_is_markup() -> None:
    record = checks(Check(HOSTILE, 1.0)) | {
        "controls": [{"name": HOSTILE, "caught": True}],
        "remarks": [HOSTILE],
        "parameters": {HOSTILE: HOSTILE, "voice": HOSTILE},
        "tables": [{"name": HOSTILE, "file": f'"{HOSTILE}', "row_count": 1}],
        **dict.fromkeys(("variant", "active_provider", "requested_provider"), HOSTILE),
        "machine": {"cpu": HOSTILE},
        "git": {"commit": HOSTILE},
    }
    for verdict in ("passed", "crashed"):
        html = header_html(result(record, verdict, message=HOSTILE))
        assert "<script" not in html
        assert 'href="%22' in html


def test_what_finished_is_a_mapping_and_one_line(tmp_path: Path) -> None:
    found = finished(tmp_path)
    assert found["verdict"] == "passed"
    assert json.loads(json.dumps(found)) == dict(found)
    assert repr(found) == "99_test: passed"
