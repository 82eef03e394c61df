"""The gate of faults passes what is whole, and says of everything else what became of it."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kokoro_lab.errors import ParameterError, SynthesisError
from kokoro_lab.lab import plots
from kokoro_lab.lab.bench.client import ANSWER_S, Patience
from kokoro_lab.lab.bench.faulty import DisturbedStream, FaultySpeaker, disturbed, subjects
from kokoro_lab.lab.bench.own_server import own_server
from kokoro_lab.lab.bench.persistent import PATIENCE_S
from kokoro_lab.lab.bench.received import ReceivedChunk, ReceivedStream
from kokoro_lab.lab.faults import load_scenario, load_scenarios
from kokoro_lab.lab.faults.injector import WholeStream
from kokoro_lab.lab.faults.scenario import Transport
from kokoro_lab.lab.gates import faults
from kokoro_lab.lab.gates.faults import controls
from kokoro_lab.speech.engine import Engine

TEXT = (
    "The kettle is on, and the window is open to the garden behind the house. "
    "Nobody is in, and nobody has been all day. Rain fell on the quiet town until the morning."
)
SCENARIOS = (
    "chunks_lost_in_queue,chunks_lost_on_line,chunks_reordered_on_line,connection_cut,disk_full,g2p_stalled"
)
TRANSPORTS: list[Transport] = ["library", "http", "sse", "websocket"]


@pytest.fixture(scope="module")
def speaking(
    hum: Engine, tmp_path_factory: pytest.TempPathFactory, repository: Path
) -> Iterator[dict[Transport, FaultySpeaker]]:
    model = tmp_path_factory.mktemp("hum") / "hum.onnx"
    command = [sys.executable, "-m", "tests.server.tiny_server", str(model)]

    def start(settings: dict[str, object]) -> object:
        return own_server({"voice": "hum", **settings}, command, repository)

    with subjects(lambda: hum, TEXT, "hum", TRANSPORTS, start) as found:
        yield found


@pytest.mark.test_all
def test_every_word_survives_by_every_transport_and_every_control_is_caught(
    speaking: dict[Transport, FaultySpeaker],
) -> None:
    scenarios = load_scenarios(SCENARIOS)
    table, whole, rtf = faults.measure(speaking, TEXT, scenarios)
    ended = {(row.scenario, row.transport): row.ended for row in table.itertuples()}
    assert set(table.ended) <= {faults.SAMPLES, faults.WORDS, faults.ERROR}, ended
    assert {key for key, how in ended.items() if how == faults.WORDS} == {
        ("g2p_stalled", transport) for transport in TRANSPORTS
    }
    assert {key[1] for key, how in ended.items() if how == faults.ERROR} <= {"http"}
    failed = {check.name for check in faults.judge(table, len(table), rtf) if not check.passed}
    assert failed <= {"longest_silence_s", "g2p_stalled_ttfa_most_s"}  # say how busy this machine is
    assert faults.asked(scenarios, TRANSPORTS) == len(table)
    found = controls(speaking, whole, TEXT)
    assert len(found) == 11
    assert all(control.caught for control in found), found
    plots.outcomes(table, faults.COLOURS)
    assert speaking["library"].facts()["variant"] == "fp32"
    assert faults.figures(table, rtf)["streams_by_words_count"] == len(TRANSPORTS)
    assert len(faults.worst(table, 3)) == 3


@pytest.mark.parametrize(
    ("whole", "waits_s"),
    [
        (None, ANSWER_S),  # nothing is wrong with an undisturbed stream, however slow
        (ReceivedStream(arrivals_s=[0.1, 0.2]), PATIENCE_S),
        (ReceivedStream(arrivals_s=[0.5, 3.0]), 5.0),
    ],
    ids=["undisturbed", "quick", "slow"],
)
def test_on_a_slow_machine_a_silence_is_not_taken_for_a_fault(
    whole: ReceivedStream | None, waits_s: float
) -> None:
    waited_s = []

    def source(heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
        waited_s.append(patience())
        yield ReceivedChunk("0.0", bytes(2_400))

    speaker = FaultySpeaker(
        transport="library",
        url=None,
        arm=lambda scenario: None,
        journal=lambda: {"struck": 0, "spoken": []},
        forget=lambda: None,
        facts=dict,
        source=lambda _: source,
    )
    disturbed(speaker, None, whole)
    assert waited_s == [waits_s]


def test_a_library_alone_needs_no_server_and_has_its_controls(hum: Engine) -> None:
    with subjects(lambda: hum, TEXT, "hum", ["library"], partial(pytest.fail, "no server")) as found:
        table, whole, _ = faults.measure(found, TEXT, load_scenarios("chunks_lost_in_queue"))
        assert list(table.ended) == [faults.SAMPLES]
        assert all(control.caught for control in controls(found, whole, TEXT))


PCM = bytearray(range(200)) * 100
WORDS = ((0, 3), (4, 10), (11, 13))
HEARD = ReceivedStream(PCM, [0.1, 0.2], [0.2, 0.2], complete=True)
WHOLE = DisturbedStream(HEARD, 0, (WholeStream(WORDS, len(PCM) // 2),))
CUT = load_scenario("connection_cut")
QUEUE = load_scenario("chunks_lost_in_queue")
STALLED = load_scenario("g2p_stalled")


def outcome(**changed: object) -> dict[str, Any]:
    return {**faults.outcome_of(replace(WHOLE, struck=1), WHOLE, TEXT, CUT, "sse"), **changed}


def failures(*outcomes: dict[str, Any], asked: int = 1, rtf: float = 0.3) -> list[str]:
    table = pd.DataFrame(outcomes)
    return [check.name for check in faults.judge(table, asked, rtf) if not check.passed]


def test_a_stream_that_is_whole_passes() -> None:
    assert outcome()["ended"] == faults.SAMPLES
    assert failures(outcome()) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"passed": False}, "streams_not_whole_count"),
        ({"struck": 0}, "streams_without_their_fault_count"),
        ({"longest_silence_s": 1.1}, "longest_silence_s"),
        ({"scenario": "g2p_stalled", "ttfa_s": 0.8}, "g2p_stalled_ttfa_most_s"),
        ({"scenario": "provider_lost", "longest_silence_s": 0.05}, "provider_lost_silence_most_s"),
    ],
)
def test_each_check_is_there_for_something(changed: dict[str, object], said: str) -> None:
    assert failures(outcome(**changed)) == [said]


def test_on_a_machine_that_does_not_keep_up_words_are_judged_and_times_are_told() -> None:
    slow = outcome(scenario="g2p_stalled", ttfa_s=0.8, longest_silence_s=3.0)
    table = pd.DataFrame([slow])
    assert failures(slow, rtf=0.9) == []
    assert failures({**slow, "passed": False}, rtf=0.9) == ["streams_not_whole_count"]
    told = faults.figures(table, 0.9)
    assert (told["longest_silence_s"], told["g2p_stalled_ttfa_most_s"]) == (3.0, 0.8)
    assert told["rtf_undisturbed_max_ratio"] == 0.9
    (said,) = faults.remarks(0.9)
    assert said == "no time decides: the RTF of undisturbed streams is 0.90, and at most 0.5 is needed"
    assert faults.remarks(0.3) == []


def test_a_stream_that_was_not_run_fails() -> None:
    assert failures(outcome(), asked=2) == ["streams_count"]


@pytest.mark.parametrize(
    ("transport", "passed"), [("http", True), ("sse", False), ("websocket", False), ("library", False)]
)
def test_an_error_is_an_end_only_where_nothing_better_can_be_had(transport: Transport, passed: bool) -> None:
    heard = replace(HEARD, pcm=PCM[:400], complete=False, breaks=[SynthesisError("broke off")])
    found = faults.outcome_of(DisturbedStream(heard, 1, ()), WHOLE, TEXT, QUEUE, transport)
    assert (found["ended"], found["passed"]) == (faults.ERROR, passed)


@pytest.mark.parametrize(
    "heard",
    [
        replace(HEARD, pcm=PCM[:400], complete=False),  # no error was told
        replace(
            HEARD, pcm=PCM[2:400], complete=False, breaks=[SynthesisError("broke off")]
        ),  # and what came was wrong
        replace(HEARD, pcm=PCM[:400]),  # it looks whole
    ],
)
def test_what_is_no_clear_error_is_a_loss(heard: ReceivedStream) -> None:
    found = faults.outcome_of(DisturbedStream(heard, 1, ()), WHOLE, TEXT, QUEUE, "http")
    assert (found["ended"], found["passed"]) == (faults.LOST, False)


def test_other_samples_pass_by_their_words_only_where_another_g2p_read() -> None:
    other = DisturbedStream(replace(HEARD, pcm=PCM[::-1]), 1, WHOLE.spoken)
    assert faults.outcome_of(other, WHOLE, TEXT, STALLED, "sse")["ended"] == faults.WORDS
    assert faults.outcome_of(other, WHOLE, TEXT, CUT, "sse")["ended"] == faults.LOST
    short = replace(other, heard=replace(HEARD, pcm=PCM[:-2]))
    assert faults.outcome_of(short, WHOLE, TEXT, STALLED, "sse")["ended"] == faults.LOST


def test_words_are_compared_without_their_marks() -> None:
    assert faults.letters("So, it is.", [(0, 3), (4, 6), (7, 10)]) == "Soitis"
    assert faults.letters("So, it is.", [(0, 2), (2, 3), (4, 6), (7, 9), (9, 10)]) == "Soitis"


def test_transports_are_named_or_refused() -> None:
    assert faults.transports_of("sse, library") == ["sse", "library"]
    with pytest.raises(ParameterError, match="no transport 'smoke'"):
        faults.transports_of("smoke")


def test_what_is_put_in_is_described() -> None:
    table = faults.described(load_scenarios())
    assert "stall_s=1.5" in table.loc["g2p_stalled", "faults"]
    assert table.loc["connection_cut", "seams"] == "transport"
