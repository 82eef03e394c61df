"""What one client may ask of the server, and that others hear nothing of it."""

from __future__ import annotations

import threading
from contextlib import suppress

import httpx2
import pytest

from tests.installed.command import Installed, Served

SENTENCE = "The colonel's yacht was anchored near the choir, and the gracklebird was reading on the quay."
SLOW_TEXT = "1/" * 2_000
"""Its G2P took minutes, in which eSpeak read what others had sent."""


def test_ten_minutes_of_breaks_in_a_row_are_refused_at_once_with_their_place(served: Served) -> None:
    document = "<speak>a\n" + "<break time='10s'/>\n" * 600 + "b</speak>"
    answer = served.speak(document, input_format="ssml", stream=False)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_ssml", "input")
    assert error["message"].startswith("Line 8, column 1: ")
    assert "up to 60s of breaks in a row, and up to 600s in a document" in error["message"]


@pytest.mark.test_all
def test_a_slow_text_changes_nothing_that_another_client_hears(served: Served) -> None:
    # ephemeral: nothing comes from a cache or goes there
    def heard() -> bytes:
        answer = served.speak(SENTENCE, response_format="pcm", ephemeral=True, stream=False)
        assert answer.status_code == 200
        assert "X-Kokoro-Fallbacks" not in answer.headers
        return answer.content

    def ask_slowly() -> None:
        with suppress(httpx2.HTTPError):  # it is stopped in the end
            served.speak(SLOW_TEXT, client="slow")

    alone = heard()
    slow = threading.Thread(target=ask_slowly)
    slow.start()
    beside = [heard() for _ in range(3)]
    served.speak("Stop.", client="slow")  # the latest request of a client wins
    slow.join(120)
    assert set(beside) == {alone}


def test_marks_that_are_left_out_are_said(served: Served) -> None:
    answer = served.speak("Ze" + "\u0301" * 40_000 + "bra.", stream=False)
    assert answer.status_code == 200
    assert answer.headers["X-Kokoro-Fallbacks"] == "text=1"


@pytest.mark.test_all
def test_a_server_that_does_not_fit_into_its_limit_says_what_it_needs_and_ends(installed: Installed) -> None:
    done = installed.run("serve", "--port", "0", KOKORO_MEMORY_LIMIT_MB="300")
    assert done.returncode != 0
    assert "The server does not fit into 300 MB" in done.stderr
    assert "or more with this variant and voice" in done.stderr
