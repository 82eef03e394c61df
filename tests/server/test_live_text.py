"""A text that is still being written, over the WebSocket: spoken as the whole text is, from its beginning."""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from typing import Any

import pytest

from kokoro_lab.speech.engine import Engine
from tests.server.conftest import RunningServer, wait_until
from tests.server.test_resume import TEXT
from tests.server.test_speech import pcm_of_stream
from tests.server.test_websocket_conversation import PLENTY, Talk, talking
from tests.speech.test_live import LATIN, cut_at_random
from tests.speech.test_markdown_speech import ANSWER

KETTLE = "The kettle is on. 👍🏽"


def request_entry(server: RunningServer, request_id: str) -> dict[str, Any]:
    """The line of a request in the log."""

    def found() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
        return [each for each in lines if each.get("request_id") == request_id and "outcome" in each]

    wait_until(lambda: bool(found()))
    return found()[0]


def write(talk: Talk, text: str, seed: int = 0, **fields: Any) -> None:
    talk.say("speak", live=True, credit=PLENTY, **fields)
    for each in cut_at_random(text, seed):
        talk.say("append", text=each)


@pytest.mark.parametrize("text", [TEXT, *LATIN])
def test_how_it_is_cut_changes_nothing(server: RunningServer, engine: Engine, text: str) -> None:
    with talking(server) as talk:
        write(talk, text)
        talk.say("end")
        done = talk.until("done")
    assert talk.pcm == pcm_of_stream(engine, text)
    assert done["usage"]["output_tokens"] > 0
    assert server.status()["active"] == 0


def test_how_markdown_is_cut_changes_nothing(server: RunningServer, engine: Engine) -> None:
    with talking(server) as talk:
        write(talk, ANSWER, input_format="markdown", code="name", emoji="skip")
        talk.say("end")
        talk.until("done")
    assert talk.pcm == pcm_of_stream(engine, ANSWER, input_format="markdown", code="name", emoji="skip")


def test_it_is_heard_before_its_end_is_written(server: RunningServer) -> None:
    with talking(server) as talk:
        write(talk, "The kettle is on.\n\nThe window is")
        while not talk.frames:
            talk.hear()
        talk.say("append", text=" open.")
        talk.say("end")
        talk.until("done")


def test_a_flush_is_spoken_at_once_and_the_text_goes_on(server: RunningServer) -> None:
    with talking(server) as talk:
        write(talk, "The kettle is on, and")
        talk.say("flush")
        while not talk.frames:
            talk.hear()
        talk.say("append", text=" the window is open.")
        talk.say("end")
        talk.until("done")


def test_who_pauses_is_spoken_where_that_is_asked_for_and_it_is_said(server: RunningServer) -> None:
    with talking(server) as talk:
        write(talk, "The kettle is on, and", max_wait_ms=50)
        while not talk.frames:
            talk.hear()
        talk.say("end")
        assert talk.until("done")["fallbacks"]["text"] == 1


def test_cancel_is_heeded_while_text_is_waited_for(server: RunningServer, engine: Engine) -> None:
    with talking(server) as talk:
        write(talk, "The kettle is on.\n\nThe")
        while not talk.frames:
            talk.hear()
        talk.say("cancel")
        assert talk.until("error")["error"]["code"] == "cancelled"
        wait_until(lambda: server.status()["active"] == 0)
        talk.pcm = b""
        talk.say("speak", input="And again.", credit=PLENTY)
        talk.until("done")
        assert talk.pcm == pcm_of_stream(engine, "And again.")


def test_who_leaves_in_the_midst_frees_the_slot(server: RunningServer) -> None:
    with talking(server) as talk:
        write(talk, "The kettle is on.\n\nThe")
        talk.until("started")
    wait_until(lambda: server.status()["active"] == 0)


@pytest.mark.parametrize("seed", range(6))
def test_who_was_cut_off_brings_the_text_so_far_and_goes_on(
    server: RunningServer, engine: Engine, seed: int
) -> None:
    chance = random.Random(seed)
    text = f"{TEXT}\n\n{LATIN[0]}"
    written = chance.randrange(len(text) // 2, len(text))
    with talking(server) as talk:
        write(talk, text[:written])
        while len(talk.frames) < 3 + chance.randrange(20):
            talk.hear()
        talk.connection.sock.close()
        heard, last_id, token = talk.pcm, talk.last_id, talk.token
    with talking(server) as again:
        fields = {
            "live": True,
            "credit": PLENTY,
            "input": text[:written],
            "last_id": last_id,
            "resume": token,
        }
        again.say("resume", **fields)
        again.say("append", text=text[written:])
        again.say("end")
        again.until("done")
    assert heard + again.pcm == pcm_of_stream(engine, text)


def test_the_pause_of_a_writer_is_no_underrun(server: RunningServer) -> None:
    before = server.status()["underruns"]
    with talking(server) as talk:
        write(talk, "One.\n\nTwo")
        while not talk.frames:
            talk.hear()
        time.sleep(1.5)  # longer than what was said
        talk.say("append", text=" and three.\n\nFour.")
        talk.say("end")
        talk.until("done")
    assert server.status()["underruns"] == before


def test_the_log_counts_all_of_a_text(server: RunningServer) -> None:
    for ephemeral in (False, True):
        with talking(server) as talk:
            talk.say("speak", live=True, input="The kettle ", credit=PLENTY, ephemeral=ephemeral)
            request_id = talk.until("started")["id"]
            for each in ("is ", "on. 👍🏽"):
                talk.say("append", text=each)
            talk.say("end")
            talk.until("done")
        entry = request_entry(server, request_id)
        assert entry["characters"] == len(KETTLE)
        expected = None if ephemeral else hashlib.sha256(KETTLE.encode()).hexdigest()[:16]
        assert entry["sha256"] == expected


def test_an_error_says_whether_the_stream_ended(server: RunningServer) -> None:
    with talking(server) as talk:
        talk.say("append", text="more")
        assert talk.until("error")["ended"] is True  # there is none
        talk.say("speak", live=True, credit=PLENTY)
        talk.until("started")
        for wrong in ({"kind": "append", "text": 5}, {"kind": "speak", "input": 5}, {"kind": "nonsense"}):
            talk.say(**wrong)
            assert talk.until("error")["ended"] is False
        talk.say("append", text="The kettle is on.")
        talk.say("cancel")
        assert talk.until("error")["ended"] is True
        talk.say("speak", input="   ", credit=PLENTY)
        assert talk.until("error")["ended"] is True


@pytest.mark.parametrize(
    ("said", "param"),
    [
        ({"type": "append", "text": "more"}, "type"),
        ({"type": "flush"}, "type"),
        ({"type": "end"}, "type"),
        ({"type": "speak", "input": "a", "live": 1}, "live"),
        ({"type": "speak", "input": "a", "max_wait_ms": 50}, "max_wait_ms"),
        ({"type": "speak", "live": True, "max_wait_ms": 0}, "max_wait_ms"),
        ({"type": "speak", "live": True, "input_format": "ssml"}, "input_format"),
    ],
)
def test_what_makes_no_sense_is_refused(server: RunningServer, said: dict[str, Any], param: str) -> None:
    with talking(server) as talk:
        talk.say(**{"kind": said.pop("type"), **said})
        assert talk.until("error")["error"]["param"] == param
        talk.say("speak", input="Hello.", credit=PLENTY)
        talk.until("done")


def test_an_append_has_a_text_and_room(server: RunningServer) -> None:
    with talking(server) as talk:
        talk.say("speak", live=True, credit=PLENTY)
        talk.say("append", text=5)
        assert talk.until("error")["error"]["param"] == "text"
        talk.say("append", text="The kettle is on. ")
        talk.say("end")
        talk.until("done")


def test_only_who_waits_for_text_is_given_up(engine: Engine) -> None:
    """A long text whose end was sent long ago is spoken to its end."""
    live = engine.session(voice="hum")
    live.append("The kettle is on. " * 40)
    assert live.starving_s == 0
    listener = threading.Thread(target=lambda: list(live))
    listener.start()
    wait_until(lambda: live.starving_s > 0)
    live.end()
    listener.join(60)
    assert live.starving_s == 0
