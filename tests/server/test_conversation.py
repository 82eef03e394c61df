"""How a conversation shares its time, without a server: between what is said, and what is to be said."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from flask import Flask

from kokoro_lab.config import settings
from kokoro_lab.containers import Encoder
from kokoro_lab.datatypes import AudioChunk
from kokoro_lab.errors import Interrupted, TextError, Unavailable
from kokoro_lab.playback.buffering import STABLE
from kokoro_lab.server.health.figures import ServerFigures
from kokoro_lab.server.health.lifecycle import STOPPING
from kokoro_lab.server.http.conversation import Conversation
from kokoro_lab.server.http.guard import max_body_bytes
from kokoro_lab.server.requests import account as account_module
from kokoro_lab.server.requests.account import Account
from kokoro_lab.server.requests.slots import Admission
from kokoro_lab.server.requests.speech_events import AudioBytes, SpeechEvents
from tests.server.test_account import Clock
from tests.server.test_speech_events import LateStream


class Scripted(Conversation):
    """One whose client says something each time that it is asked."""

    def __init__(self, app: Flask, **synthesis: Any) -> None:
        with app.app_context():
            super().__init__(Mock(), Mock(admission=Admission()), "id", Mock())
        self.told: list[Exception] = []
        self._synthesis = Mock(stopped=False, live=None, **synthesis)
        self._events = Mock(synthesis=self._synthesis)

    def _tell_error(self, error: Exception) -> None:
        self.told.append(error)
        self._over = True


def test_who_says_much_hears_speech_meanwhile(app: Flask) -> None:
    class Talkative(Scripted):
        heard = spoken = 0

        def _hear(self, message: str | bytes) -> None:
            self.heard += 1
            self._over = self.heard == 10

        def _speak_on(self) -> None:
            self.spoken += 1

    conversation = Talkative(app)
    conversation.run()
    assert conversation.spoken == 9, "not behind the last word"
    assert conversation._events.ready.call_args.args == (0,)


def test_who_is_stopped_with_the_server_is_told_once(app: Flask) -> None:
    conversation = Scripted(app)
    conversation._synthesis = Mock(stopped=True)
    conversation._synthesis.account.reason = lambda error: error
    conversation._state.admission.refuse(Unavailable("Stopping.", retry_after_s=1, code=STOPPING))
    conversation.run()
    assert [type(each) for each in conversation.told] == [Interrupted]


def test_who_was_refused_since_the_server_stops_is_not_told_again(app: Flask) -> None:
    class Asking(Scripted):
        def _tell_error(self, error: Exception) -> None:
            self.told.append(error)

    stopping = Unavailable("Stopping.", retry_after_s=1, code=STOPPING)
    for refused in (1, 0):
        conversation = Asking(app)
        conversation._synthesis = conversation._events = None
        conversation._state.admission.refuse(stopping)
        for _ in range(refused):
            conversation._refuse(stopping)  # what it has just asked for
        conversation.run()
        assert [str(each) for each in conversation.told] == [str(stopping)]


@pytest.mark.parametrize("starving_s", [0.0, 5.0])
def test_only_what_we_make_a_client_wait_for_is_a_stall(app: Flask, starving_s: float) -> None:
    conversation = Scripted(app)
    conversation._events.ready.return_value = False
    conversation._synthesis.live = SimpleNamespace(starving_s=starving_s)
    conversation._keepalive_s = -1.0
    conversation._speak_on()
    assert conversation._synthesis.account.stalled.called == (not starving_s)


def test_of_what_is_said_before_a_text_begins_only_so_much_is_kept(app: Flask) -> None:
    conversation = Scripted(app)
    conversation._state.settings = settings()
    said = "a" * (max_body_bytes(settings()) // 4)
    conversation._ws.receive.side_effect = [said] * 4 + [None] + [said] * 4
    assert not conversation._given_up()
    assert list(conversation._said_meanwhile) == [said] * 4
    with pytest.raises(TextError, match="Too much was written"):
        conversation._given_up()
    assert not conversation._said_meanwhile


def test_a_live_text_whose_writer_pauses_while_speech_is_late_goes_on(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Paused(LateStream):
        def __next__(self) -> AudioChunk:
            chunk = super().__next__()
            self.text_came_s = 104.0 if chunk.chunk_id == 11 else None
            return chunk

    class Listener(Scripted):
        heard = 0

        def _tell_audio(self, frame: AudioBytes) -> None:
            self.heard += 1
            account.taken()  # at once

    clock = Clock()
    monkeypatch.setattr(account_module, "time", clock)
    account = Account("a", ServerFigures())
    account.streams(STABLE)
    listener = Listener(app)
    synthesis: Any = SimpleNamespace(
        account=account, stop=threading.Event(), live=SimpleNamespace(starving_s=0.0)
    )
    listener._synthesis = synthesis
    stream: Any = Paused()
    encoder = Encoder("pcm", 24_000, 0)
    listener._events = SpeechEvents(
        synthesis, stream, encoder, lambda _: None, words=False, after=-1, encode_all=False, stall_s=5
    )
    for number in range(12):  # each chunk of 50 ms after 0.2 s, and the last one 0.4 s after its text
        clock.now_s = 104.4 if number == 11 else 100 + 0.2 * number
        while listener.heard == number and not listener.told:
            listener._speak_on()
    assert (listener.told, listener.heard) == ([], 12)
    listener._events.close()
