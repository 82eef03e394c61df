"""A panel of listeners, each with a secret link, and the answers to their pages' requests.

A listener's page gets nothing that could tell A, B and X apart: sounds have names that are drawn anew for
each trial, X is a copy with a name of its own, and all files have one size.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import TypeAdapter

from kokoro_lab.containers.plain_json import whole_file
from kokoro_lab.errors import AnswersError
from kokoro_lab.lab.listening.answers import check_listener
from kokoro_lab.lab.listening.plan import Letter
from kokoro_lab.lab.listening.session import BUTTONS, ListeningSession

LINKS_FILE = "links.json"
LEVEL = "level"
JOIN = "*"
"""Stands for a name in the link for everybody: each person who opens it becomes a numbered listener."""
NUMBERED = "listener-"


class Panel:
    """The listeners of a test, and the person who runs it.

    Parameters
    ----------
    session : ListeningSession
        The test.
    listeners : iterable of str
        Names of the listeners.
    tokens : mapping, optional
        Name → token of listeners who have a token; the others get a new one. The name "" is the person who
        runs the test, and `JOIN` all who open the link for everybody, which leads to a numbered listener.

    Raises
    ------
    ParameterError
        A name that cannot name a listener.
    """

    def __init__(
        self, session: ListeningSession, listeners: Iterable[str], tokens: Mapping[str, str] | None = None
    ) -> None:
        self.session = session
        self.listeners = list(dict.fromkeys(map(check_listener, listeners)))
        known = tokens or {}
        self._places = [name for name in self.listeners if name.startswith(NUMBERED)]
        names = ("", *([JOIN] if self._places else []), *self.listeners)
        self.tokens = {name: known.get(name) or secrets.token_urlsafe() for name in names}
        self._names = {token: name for name, token in self.tokens.items()}
        self._locks = {name: Lock() for name in names}
        self._sounds: dict[str, tuple[int, dict[str, str]]] = {}

    def name_of(self, token: str) -> str | None:
        """The name of the listener with this token: "" for the person who runs the test, `JOIN` for the link
        for everybody, None if nobody has this token."""
        return self._names.get(token)

    def free_places(self) -> list[str]:
        """The numbered listeners who have not begun."""
        return [name for name in self._places if not self.session.path_of(name).exists()]

    def join(self) -> str | None:
        """Begin the test of a numbered listener who has not begun, and return their token; None if all have.

        Their file of answers exists from then on, so that nobody else gets this place.
        """
        with self._locks[JOIN]:
            free = self.free_places()
            if not free:
                return None
            self.session.sitting(free[0])
            return self.tokens[free[0]]

    def state(self, listener: str) -> dict[str, Any]:
        """What a listener's page shows next: a trial with the names of its sounds, or their result.

        Raises
        ------
        AnswersError
            The listener's file of answers is damaged, or belongs to another test.
        """
        with self._locks[listener]:
            return self._state(listener)

    def sound(self, listener: str, sound: str) -> bytes | None:
        """The WAV file with the name `sound` in the listener's next trial; None if there is no such file."""
        with self._locks[listener]:
            sitting = self.session.sitting(listener)
            button = self._sounds_of(listener, len(sitting.answers.letters)).get(sound)
            if button is None or sitting.answers.complete:
                return None
            return sitting.calibration() if button == LEVEL else sitting.wav(button)

    def answer(
        self,
        listener: str,
        number: int,
        letter: Letter,
        plays: Mapping[str, int],
        heard_s: Mapping[str, float],
    ) -> dict[str, Any]:
        """Keep an answer, and return the next state. Raises as `Sitting.answer`."""
        with self._locks[listener]:
            self.session.sitting(listener).answer(number, letter, plays, heard_s)
            return self._state(listener)

    def progress(self) -> dict[str, int]:
        """Listener → number of trials answered, for the panel's listeners and for all others with a file in
        the folder."""
        result = self.session.result()
        finished = dict.fromkeys((*result.counts, *result.inattentive), len(self.session.plan))
        begun = {name: done for name, (done, _) in result.unfinished.items()}
        return dict.fromkeys(self.listeners, 0) | finished | begun

    def _state(self, listener: str) -> dict[str, Any]:
        sitting = self.session.sitting(listener)
        answered, trials = len(sitting.answers.letters), len(sitting.trials)
        state = {"answered": answered, "trials": trials, "complete": sitting.answers.complete}
        if sitting.answers.complete:
            return state | {"result": sitting.result()._repr_html_()}
        sounds = {button: sound for sound, button in self._sounds_of(listener, answered).items()}
        return state | {
            "calibration": sounds.pop(LEVEL),
            "sounds": sounds,
            "least_s": sitting.least_s,
            "sample_rate_hz": self.session.plan.pairs[0].sample_rate_hz,
            "note": sitting.answers.note,
        }

    def _sounds_of(self, listener: str, number: int) -> dict[str, str]:
        """Name of each sound of a trial → "A", "B", "X" or `LEVEL`, the passage for setting the volume."""
        drawn = self._sounds.get(listener)
        if drawn is None or drawn[0] != number:
            drawn = number, {secrets.token_urlsafe(9): button for button in (*BUTTONS, LEVEL)}
            self._sounds[listener] = drawn
        return drawn[1]


def open_panel(session: ListeningSession, listeners: Iterable[str] = ()) -> Panel:
    """The panel of a test. Its links stay the same: they are kept in a file of the test's folder that only
    the file's owner may read.

    Parameters
    ----------
    session : ListeningSession
    listeners : iterable of str
        Listeners to add to those who have a link already.

    Raises
    ------
    ParameterError
        A name that cannot name a listener.
    AnswersError
        The file of links is damaged.
    """
    path = session.folder / LINKS_FILE
    kept = _read_links(path)
    panel = Panel(session, [name for name in (*kept, *listeners) if name not in ("", JOIN)], kept)
    if panel.tokens != kept:
        with whole_file(path) as making:
            making.touch(0o600)
            making.write_text(json.dumps(panel.tokens, indent=1), "utf-8")
    return panel


def _read_links(path: Path) -> dict[str, str]:
    try:
        return TypeAdapter(dict[str, str]).validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        mend = "Move it away: new links are made; answers stay."
        raise AnswersError.of(path, f"{path.name} is not a file of links.", mend, "folder") from error
