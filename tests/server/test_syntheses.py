"""One more is admitted while all can be served in time, by what speech has cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask
from werkzeug.exceptions import TooManyRequests

from kokoro_lab.config import Settings
from kokoro_lab.server.requests.slots import Admission, Slots
from kokoro_lab.server.requests.syntheses import CHARACTERS_PER_S, KNOWN_S, Syntheses, Synthesis

PLACES = 16


class Room:
    """Syntheses of which none really speaks."""

    def __init__(self, **changed: Any) -> None:
        self.slots = Slots(PLACES)
        settings = Settings(**{"capacity": 0.8, "first_audio_deadline_s": 30.0, **changed})
        self.syntheses = Syntheses(self.slots, Admission(), settings)
        self.syntheses.costs.note("hum", 0.2, 1.0)

    def comes(
        self, *, streamed: bool = True, text: str = "x" * 150, voice: str = "hum", resumed: bool = False
    ) -> Synthesis:
        """One more, admitted."""
        account: Any = SimpleNamespace(
            request_id=f"{self.slots.active}",
            asked={"streamed": streamed, "resumed": resumed},
            age_s=0.0,
            admitted=lambda: None,
            first_audio_s=None,
        )
        asked: Any = SimpleNamespace(client=None)
        utterance: Any = SimpleNamespace(text=text, voice=voice)
        synthesis = Synthesis(account, asked, utterance, "somebody")
        self.syntheses.admit(synthesis, lambda: False)
        return synthesis

    def speaks(self, synthesis: Synthesis, **facts: Any) -> None:
        """It is under way."""
        known = {"given_s": 0.0, "pace": 1.0, "lead_s": 0.0, **facts}
        stream: Any = SimpleNamespace(
            claim=SimpleNamespace(**known),
            compute_s=known.get("compute_s", 0.0),
            is_computed=known.get("is_computed", False),
            segments=[SimpleNamespace(end=known["done"])] if "done" in known else [],
            characters=len(synthesis.utterance.text),
        )
        synthesis.stream = stream


@pytest.fixture
def room() -> Iterator[Room]:
    with Flask("room").app_context():
        yield Room()


@contextmanager
def refused() -> Iterator[Any]:
    with pytest.raises(TooManyRequests) as found:
        yield found


def test_as_many_are_admitted_as_can_be_served_in_time(room: Room) -> None:
    for _ in range(4):
        room.comes()
    with refused():
        room.comes()
    room.syntheses.costs.note("hum", 0.0, 1e3)
    room.comes()


def test_the_share_that_listeners_may_need_is_the_settings() -> None:
    with Flask("room").app_context():
        room = Room(capacity=0.4)
        for _ in range(2):
            room.comes()
        with refused():
            room.comes()


def test_what_a_stream_costs_itself_counts_once_it_is_known(room: Room) -> None:
    for _ in range(3):
        room.speaks(room.comes(), given_s=KNOWN_S, compute_s=0.25 * KNOWN_S)
    with refused():
        room.comes()


def test_who_takes_little_or_nothing_keeps_nobody_out(room: Room) -> None:
    slow = [room.comes() for _ in range(4)]
    for synthesis in slow[:2]:
        room.speaks(synthesis, pace=0.25)
    room.speaks(slow[2], is_computed=True)
    assert room.slots.active == 4
    for _ in range(2):
        room.comes()
    with refused():
        room.comes()


def test_one_alone_is_served_whatever_it_costs(room: Room) -> None:
    room.syntheses.costs.note("dear", 30.0, 1.0)
    dear = room.comes(voice="dear")
    with refused():
        room.comes()
    dear.end()
    room.comes()


def test_a_degrade_mode_that_halves_the_places_halves_the_load(room: Room) -> None:
    room.slots.restrict(PLACES // 2)
    for _ in range(2):
        room.comes()
    with refused():
        room.comes()


def test_files_are_two_at_a_time_and_no_load(room: Room) -> None:
    for _ in range(2):
        room.comes(streamed=False)
    with refused():
        room.comes(streamed=False)
    for _ in range(4):
        room.comes()


def test_who_is_sent_away_comes_back_when_there_will_be_room(room: Room) -> None:
    for number in range(4):
        done = {"done": 100, "given_s": 10.0, "compute_s": 2.0, "pace": 1.25}
        room.speaks(room.comes(text="x" * (200 + 100 * number)), **done)
    with refused() as found:
        room.comes()
    # 100 characters are left of the shortest, at 0.1 s each, taken somewhat faster than they are heard
    assert found.value.retry_after == 8


def test_what_has_ended_is_measured_once(room: Room) -> None:
    synthesis = room.comes(voice="new")
    room.speaks(synthesis, given_s=10.0, compute_s=4.0)
    for _ in range(2):
        synthesis.end()
    assert room.syntheses.costs.of("new") == pytest.approx(0.4)


def test_a_resumed_stream_says_nothing_of_what_speech_costs(room: Room) -> None:
    """All of it was computed again, and the listener was given only its last 10 s."""
    resumed = room.comes(resumed=True)
    room.speaks(resumed, given_s=10.0, compute_s=100.0)
    assert resumed.load(room.syntheses.costs) == pytest.approx(0.2)
    resumed.end()
    assert room.syntheses.costs.of("hum") == pytest.approx(0.2)


def test_what_is_left_of_a_resumed_stream_is_not_counted_by_what_was_given(room: Room) -> None:
    resumed = room.comes(text="x" * 450, resumed=True)
    room.speaks(resumed, done=300, given_s=10.0, compute_s=2.0)
    assert resumed.left_s(room.syntheses.costs) == pytest.approx(150 / CHARACTERS_PER_S)
