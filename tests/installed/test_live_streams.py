"""Streams of live text that break, on the real weights: what follows is what would have followed."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
import websocket

from kokoro_lab.lab.fixtures import load_rows
from tests.installed.command import Served
from tests.server.test_websocket_conversation import PLENTY, Talk, talking
from tests.speech.test_live import cut_at_random

STREAMS = 100


def made_up(seed: int) -> tuple[dict[str, Any], str]:
    """The fields of a request, and a text of some sentences and paragraphs, every other one Markdown."""
    chance = random.Random(seed)
    rows = [row["text"] for row in load_rows("intelligibility") if row["language"] == "en"]
    parts = [chance.choice(rows) for _ in range(chance.randint(2, 3))]
    if seed % 2:
        text = (
            f"# {parts[0]}\n\n" + "".join(f"- **{part[:5]}**{part[5:]}\n" for part in parts[1:]) + "\nYes.\n"
        )
        return {"input_format": "markdown"}, text
    return {}, "Sure! " + "".join(part + chance.choice((" ", " ", "\n\n")) for part in parts)


def hear_for(talk: Talk, seconds: float) -> None:
    talk.connection.settimeout(seconds)
    try:
        talk.hear()
    except websocket.WebSocketTimeoutException:
        pass
    finally:
        talk.connection.settimeout(60)


def left_and_resumed(server: Any, seed: int, later: int = 0) -> tuple[bytes, bytes]:
    """The whole speech; and what was heard of it while it was written, up to a cut and behind it.

    It is resumed so many chunks `later` than what was heard.
    """
    chance = random.Random(seed)
    fields, text = made_up(seed)
    with talking(server) as whole:
        whole.say("speak", input=text, credit=PLENTY, **fields)
        whole.until("done")
    pieces, written = cut_at_random(text, seed), 0
    wanted = chance.randrange(1, len(whole.frames))
    with talking(server) as talk:
        talk.say("speak", live=True, credit=PLENTY, **fields)
        talk.until("started")
        while len(talk.frames) < wanted:
            if written < len(pieces):
                talk.say("append", text=pieces[written])
                written += 1
                hear_for(talk, 0.002)
                if written == len(pieces):
                    talk.say("end")
            else:
                talk.hear()
        talk.connection.sock.close()
        heard, token = talk.pcm, talk.token
        last_id = "{}.{}".format(*whole.frames[len(talk.frames) - 1 + later])
    come = "".join(pieces[:written])
    with talking(server) as again:
        again.say("resume", live=True, input=come, credit=PLENTY, last_id=last_id, resume=token, **fields)
        for piece in cut_at_random(text[len(come) :], seed + 1):
            again.say("append", text=piece)
        again.say("end")
        again.until("done")
    return whole.pcm, heard + again.pcm


@pytest.mark.test_long
def test_streams_of_live_text_that_were_cut_are_resumed_to_the_same_samples(served: Served) -> None:
    server = SimpleNamespace(port=int(served.url.rpartition(":")[2]))
    exact = [left_and_resumed(server, seed) for seed in range(STREAMS)]
    assert sum(whole == resumed for whole, resumed in exact) == STREAMS
    # The control: one chunk that is left out is seen
    whole, resumed = left_and_resumed(server, 0, later=1)
    assert len(resumed) < len(whole)
    assert resumed != whole
