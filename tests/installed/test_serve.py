"""`kokoro-lab serve`, as it is started by users."""

from __future__ import annotations

from tests.installed.command import Served


def test_it_speaks(served: Served) -> None:
    answer = served.speak("The kettle is on, and the window is open.")
    assert answer.status_code == 200
    assert answer.content[:4] == b"RIFF"
