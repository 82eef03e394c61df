"""The options of a benchmark: which go together, what they print, and what they leave behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kokoro_lab.__main__ import main
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.plan import SpeechPlan
from kokoro_lab.lab.bench.verdicts import LoadPlan, SoakPlan
from kokoro_lab.speech.engine import Engine

CORPUS = [
    "The kettle is on, and the window is open.",
    "Nobody is in, and nobody has been all day.",
    "Rain fell on the quiet town until the morning.",
]


@pytest.fixture
def lab(hum: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The command line on the tiny voice, in an empty checkout."""
    monkeypatch.setattr("kokoro_lab.speech.engine.load_engine", lambda *a, **k: hum)
    for folder in ("notebooks", "fixtures"):
        (tmp_path / folder).mkdir()
    (tmp_path / "corpus.txt").write_text("\n".join(CORPUS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench(*options: str) -> Result:
    fixed = ["--preset", "short", "--trials", "3", "--voice", "hum", "--corpus", "corpus.txt"]
    return CliRunner().invoke(main, ["bench", *fixed, *options])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"profile_interval_s": 0.1}, "needs --memory"),
        ({"chunk_ms": 30, "http": True}, "--chunk-ms cannot be given with --http"),
        ({"chunk_ms": 30, "streamed": False}, "--chunk-ms cannot be given with --file: a file has no chunks"),
        ({"listen_s": 1.0, "streamed": False}, "--listen cannot be given with --file"),
        ({"peers": True, "streamed": False}, "--peers cannot be given with --file"),
        ({"peers": True, "memory": True}, "add --http"),
        ({"save_audio": True, "memory": True}, "add --http"),
        ({"piper": "python", "streamed": False}, "--piper cannot be given with --file"),
    ],
)
def test_options_that_spoil_each_other_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        SpeechPlan(**options)


def test_options_that_do_not_are_not() -> None:
    SpeechPlan(http=True, memory=True, peers=True, save_audio=True, profile_interval_s=0.1)
    SpeechPlan(memory=True, chunk_ms=120)
    SpeechPlan(http=True, peers=True, listen_s=3.0)
    LoadPlan(listeners="1,2, 12", arrivals="0.5,0.8")


@pytest.mark.parametrize("wrong", [{"listeners": "1,many"}, {"listeners": "0"}, {"arrivals": "60"}])
def test_a_load_that_is_none_is_refused_before_a_server_is_started(wrong: dict[str, str]) -> None:
    with pytest.raises(ParameterError, match=r"numbers of [\d.]+ to \d+, with commas"):
        LoadPlan(**wrong)


def test_how_long_a_load_takes_is_said_before() -> None:
    assert LoadPlan(listeners="1,2,4,8,12", arrivals="0.6").begins.endswith("It takes about 8 minutes.")


def test_a_soak_has_room_for_those_who_misbehave() -> None:
    settings = SoakPlan(concurrency=40, misbehave=True).server_settings
    assert settings["concurrency"] == settings["capacity"] == 41


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (SpeechPlan(), "one at a time"),
        (SpeechPlan(http=True), "over HTTP on the loopback"),
        (SpeechPlan(peers=True), "systems in turn, text by text, on the same number of threads"),
        (SpeechPlan(memory=True), "memory sampled meanwhile"),
    ],
)
def test_the_conditions_are_said(plan: SpeechPlan, said: str) -> None:
    assert said in plan.conditions
    assert plan.conditions in plan.heading
    assert ("at a time" in plan.conditions) is True


def test_a_run_is_kept_with_its_audio(lab: Path) -> None:
    done = bench("--save-audio", "--chunk-ms", "120", "--json")
    assert done.exit_code == 0, done.output
    (path,) = (lab / "results/bench").glob("*/result.json")
    said = json.loads(done.stdout, parse_constant=pytest.fail)  # NaN is no JSON
    assert said == json.loads(path.read_text())
    assert said["asked"]["chunk_ms"] == 120
    assert len(said["trials"]) == 3
    assert said["trials"][0]["ttfb_s"] is None
    assert said["summary"]["kokoro-lab"]["ttfa_s"]["p50"] > 0
    assert set(said["summary"]["kokoro-lab"]["rtf"]) == {"p50", "p95", "min", "max"}
    assert said["systems"]["kokoro-lab"]["model_sha256"] == "hum"
    assert len(list((path.parent / "audio").glob("*.wav"))) == 3


def test_memory_is_a_table_of_its_own_if_asked(lab: Path) -> None:
    assert "resident memory" not in bench().output
    done = bench("--memory", "--profile-interval", "0.01")
    assert done.exit_code == 0, done.output
    for row in ("rss_start_mb", "rss_peak_mb", "rss_end_mb", "rss_growth_mb", "end of the last"):
        assert row in done.output


def test_too_few_trials_for_a_percentile_are_said(lab: Path) -> None:
    assert "p95 of fewer than 20 trials" in bench().output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--chunk-ms", "29"], "30<=x<=120"),
        (["--profile-interval", "0.1"], "needs --memory"),
        (["--trials", "9"], "only 3"),
    ],
)
def test_a_wrong_option_is_exit_code_2(lab: Path, options: list[str], said: str) -> None:
    done = bench(*options)
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--lifecycle"], "--lifecycle is `kokoro-lab bench lifecycle` now"),
        (["--soak-minutes", "20"], "--soak-minutes is `kokoro-lab bench soak` now"),
        (["--concurrency", "4"], "No such option"),
        (["--trials", "3", "load"], "options of `bench load` are given after its name"),
        (["soak", "--preset", "long"], "No such option"),
        (["--lifecycles"], "No such option"),
    ],
)
def test_an_instrument_is_named_and_has_options_of_its_own(asked: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["bench", *asked])
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.test_all
@pytest.mark.model
def test_the_real_server_is_measured(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("notebooks", "fixtures"):
        (tmp_path / folder).mkdir()
    (tmp_path / "corpus.txt").write_text("\n".join(CORPUS))
    monkeypatch.chdir(tmp_path)
    options = ["--http", "--preset", "short", "--trials", "1", "--corpus", "corpus.txt", "--json"]
    done = CliRunner().invoke(main, ["bench", *options])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    (trial,) = said["trials"]
    assert 0 < trial["ttfb_s"] <= trial["ttfa_s"] < trial["wall_s"]
    assert said["systems"]["kokoro-lab http"]["model_sha256"] == engine.model_sha256
