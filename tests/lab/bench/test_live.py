"""Answers are spoken while they are written, and every second of waiting is put down to who caused it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.errors import Interrupted, SynthesisError
from kokoro_lab.lab.bench.client import live_messages, receive, speech_request
from kokoro_lab.lab.bench.live import (
    HELD_BACK_S,
    LIMITS_OF_TIMES,
    WAYS,
    LiveTrial,
    ToldSink,
    controls,
    figures,
    interrupted,
    judge,
    load_answers,
    measure,
    silent_for_good_s,
    table_of,
)
from kokoro_lab.lab.bench.own_server import own_server
from kokoro_lab.lab.bench.received import ReceivedChunk, ReceivedStream, to_the_end
from kokoro_lab.lab.results import failed
from kokoro_lab.speech.engine import Engine

CHUNK = ReceivedChunk(None, b"\0\x10" * 1200)


def text_of(answer: Any) -> str:
    return "".join(string for string, _ in answer)


def trial(
    arrivals_s: list[float], came_s: list[float], written_s: tuple[float, ...] = (0.0, 2.0)
) -> LiveTrial:
    """One whose chunks of 50 ms came so."""
    heard = ReceivedStream(bytearray(CHUNK.data * len(arrivals_s)), arrivals_s, [0.05] * len(arrivals_s))
    return LiveTrial([("One. Two.", 0.0), (" Three.", 2.0)], written_s, heard, tuple(came_s), (), 0.1)


def test_answers_are_written_as_they_were_recorded_and_at_any_pace() -> None:
    answers = load_answers()
    tokens, seconds = sum(map(len, answers)), sum(wait_s for answer in answers for _, wait_s in answer)
    assert len({text_of(answer) for answer in answers}) == len(answers) == 30
    assert tokens / seconds == pytest.approx(30, rel=0.05)
    assert max(wait_s for answer in answers for _, wait_s in answer) > 0.2  # pauses
    assert sum(not wait_s for answer in answers for _, wait_s in answer[1:]) > 100  # bursts
    (slow,) = load_answers(1, 5)
    assert [wait_s for _, wait_s in slow] == pytest.approx([6 * wait_s for _, wait_s in answers[0]])


def test_what_is_heard_is_the_answer_and_each_string_has_its_time(hum: Engine) -> None:
    answers, waited = load_answers(2), list[float]()
    for found, answer in zip(measure(hum, answers, "hum", waited.append), answers, strict=True):
        whole = np.concatenate([chunk.samples for chunk in hum.stream(text_of(answer), voice="hum")])
        assert found.heard.samples == len(whole)
        assert len(found.written_s) == len(answer)
        assert all(earlier <= later for earlier, later in pairwise(found.written_s))
        assert len(found.came_s) == len(found.heard.arrivals_s)
        (written_s, written), (heard_s, heard), _ = found.curves()
        assert len(written) == len(written_s)
        assert written[-1] >= heard[-1] > 0
        assert heard_s[-1] >= found.heard.arrivals_s[0]
        assert found.alone_s > 0
    assert waited == [wait_s for answer in answers for _, wait_s in answer]


def test_a_listener_who_waits_for_the_writer_is_starved_and_for_the_speaker_is_not() -> None:
    by_writer = trial([1.0, 1.05, 5.02], [0.9, 0.9, 5.0])
    starved_s, playout = by_writer.silences()
    assert starved_s == pytest.approx([0, 0, 3.9])
    assert playout.underruns == 0
    np.testing.assert_allclose(by_writer.curves()[2], [(1.1, 5.0)])
    starved_s, playout = trial([1.0, 1.05, 5.02], [0.9, 0.9, 0.9]).silences()
    assert starved_s == [0, 0, 0]
    assert playout.underruns == 1


def test_the_way_to_the_first_sound_is_parted_where_the_last_string_came_that_it_waited_for() -> None:
    row = trial([1.0], [0.85], (0.0, 0.5, 0.8, 1.2)).row()
    assert (row["needed_s"], row["written_s"]) == (0.8, 1.2)
    assert row["computing_s"] == pytest.approx(0.2)
    assert row["sentences_count"] == 3
    assert trial([1.0], [0.0]).row()["needed_s"] == 0


def stopped(**seconds: float) -> pd.DataFrame:
    ways = ("session_silent_s", "websocket_silent_s", "player_silent_s")
    return pd.DataFrame([dict.fromkeys(ways, 0.01) | {"websocket_first_sound_s": 1.0} | seconds])


def test_only_what_the_first_sound_needs_is_judged_where_no_time_decides() -> None:
    needy = figures(table_of([trial([3.0, 9.0], [2.1, 2.1])]), stopped(player_silent_s=1.0))
    assert failed(judge(needy, decides=False)) == ["long_answers_needed_to_their_end_count"]
    assert set(failed(judge(needy))) == {
        "long_answers_needed_to_their_end_count",
        "long_answers_not_heard_before_their_end_count",
        "underruns_count",
        "computing_to_alone_ratio",
        "player_silent_s_p95",
    }


def test_what_keeps_up_passes_and_each_limit_decides() -> None:
    good = figures(table_of([trial([1.0, 1.05], [0.9, 0.9], (0.0, 0.9, 2.0))] * 3), stopped())
    assert failed(judge(good)) == []
    assert good["websocket_first_sound_s_p50"] == 1.0
    assert (good["answers_count"], good["interruptions_count"]) == (3, 1)
    for name, limit in LIMITS_OF_TIMES.items():
        assert failed(judge({**good, name: limit + 0.5})) == [name]


def test_every_fault_is_caught(hum: Engine) -> None:
    held_back = stopped(**dict.fromkeys((f"{way}_silent_s" for way in WAYS), 1.0))
    spoken = measure(hum, load_answers(1), "hum", lambda _: None)
    assert [each for each in controls(spoken, held_back) if not each.caught] == []
    deaf = controls(spoken, held_back.assign(player_silent_s=0.01))
    assert [each.name for each in deaf if not each.caught] == [f"player: held back by {HELD_BACK_S:g} s"]


def test_the_last_chunk_behind_an_interruption_is_what_counts() -> None:
    cancelled = threading.Event()

    def chunks() -> Iterator[ReceivedChunk]:
        yield CHUNK
        cancelled.wait()
        yield CHUNK
        raise Interrupted("Over.")

    heard, silent_s = interrupted(chunks(), cancelled.set, 0.0)
    assert len(heard.arrivals_s) == 2
    assert 0 < silent_s < 0.2
    cancelled.clear()
    _, silent_s = interrupted(chunks(), cancelled.set, 0.0, late_s=0.2)
    assert silent_s >= 0.2, "the delay is counted, since a listener waits for it"
    with pytest.raises(SynthesisError, match="before it was interrupted"):
        interrupted(iter([CHUNK]), cancelled.set, 60.0)


def test_a_player_of_nobody_says_when_it_begins_and_falls_silent(capsys: pytest.CaptureFixture[str]) -> None:
    sink = ToldSink()
    for _ in range(2):
        sink.play(np.zeros(240, np.int16))
    sink.drop()
    *begun, silent = capsys.readouterr().err.splitlines()
    assert set(begun) == {"plays"}  # twice where the second came late
    assert float(silent.removeprefix("silent ")) > 0


def test_a_player_that_plays_once_more_was_not_silent() -> None:
    told = ["plays\n", "plays\n", "5 s computed\n", "silent 3.5\n", "silent 3.9\n"]
    assert silent_for_good_s(told) == 3.5, "it falls silent once more as it closes"
    assert silent_for_good_s([*told, "plays\n", "silent 4.5\n", "silent 4.9\n"]) == 4.5
    for endless in ([*told, "plays\n"], ["silent 3.5\n"], []):
        with pytest.raises(SynthesisError, match="not heard to fall silent"):
            silent_for_good_s(endless)


@pytest.mark.test_all
def test_over_a_websocket_it_is_the_same_speech(tmp_path: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "tests.server.tiny_server", str(tmp_path / "hum.onnx")]
    text = text_of(load_answers(1)[0])
    with own_server({"voice": "hum"}, command, repository) as server:
        whole = to_the_end(receive("websocket", server.url, speech_request(text, "hum")))
        with live_messages(server.url, "hum") as (say, chunks):
            for character in text:
                say("append", text=character)
            say("end")
            live = to_the_end(chunks)
    assert live.pcm == whole.pcm
