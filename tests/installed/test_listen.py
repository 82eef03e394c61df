"""`kokoro-lab listen`, as it is started by who runs a test: links, a kill, the result in the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from kokoro_lab.lab.listening import open_session
from tests.installed.command import Installed, Running
from tests.lab.listening.tones import pairs

HEARD_S = {"A": 2, "B": 2, "X": 2}


@contextmanager
def listening(installed: Installed, *arguments: str) -> Iterator[tuple[Running, dict[str, str]]]:
    """The server of the test in `test`, and the address of each by name."""
    command = ("listen", "./test", "--serve", "--port", "0", *arguments)
    with installed.started(*command) as running:
        running.awaited(r"Give each listener one link")
        yield running, dict(re.findall(r"^(\S+) +(http\S+)", running.written(), re.MULTILINE))


def answer(address: str, number: int, letter: str) -> int:
    body = {"trial": number, "answer": letter, "plays": {}, "heard_s": HEARD_S}
    return httpx2.post(f"{address}answers", json=body, timeout=30).status_code


def test_answers_and_links_survive_a_kill(installed: Installed) -> None:
    open_session(installed.folder / "test", pairs(2), repeats=2, seed=3)
    with listening(installed, "--listeners", "2") as (running, first):
        assert list(first) == ["listener-1", "listener-2", "all", "you"]
        assert "protocol.json" in running.written()
        assert "Headphones" in httpx2.get(first["all"], timeout=30).text
        assert all(address.startswith("http://127.0.0.1:") for address in first.values())
        assert answer(first["listener-1"], 0, "B") == 200
        assert answer(first["listener-2"], 0, "A") == 200
        running.process.kill()
        running.process.wait()
    with listening(installed) as (_, again):
        tokens = [{address.split("/")[3] for address in each.values()} for each in (first, again)]
        assert tokens[0] == tokens[1]
        assert httpx2.get(f"{again['listener-1']}state", timeout=30).json()["answered"] == 1
        assert "1 of 4" in httpx2.get(again["you"], timeout=30).text
        for name in ("listener-1", "listener-2"):
            assert [answer(again[name], number, "B") for number in (1, 2, 3)] == [200] * 3
    said = installed.run("listen", "./test")
    assert said.returncode == 0
    assert "everybody" in said.stdout
    assert "Missing: 31 trials and 3 listeners." in said.stdout
    record = json.loads(installed.run("listen", "./test", "--json").stdout)
    assert record["outcome"] == "open"
    assert [row["trials"] for row in record["listeners"]] == [4, 4, 8]


@pytest.mark.test_all
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["./none"], "There is no listening test in none. --serve makes one"),
        (["./test", "--serve", "--trials", "7"], "has 4 trials. Leave --trials out"),
        (["./test", "--serve", "--listeners", "no name"], "cannot name a listener"),
        (["./test", "--serve", "--port", "99999"], "There is no port 99999"),
    ],
)
def test_what_is_wrong_is_said_with_a_way_out(installed: Installed, arguments: list[str], says: str) -> None:
    open_session(installed.folder / "test", pairs(2), repeats=2, seed=3)
    done = installed.run("listen", *arguments)
    assert done.returncode in (2, 3)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.test_all
def test_a_new_test_is_spoken_by_both_variants(installed: Installed) -> None:
    with listening(installed, "--trials", "2", "--voices", "af_heart", "--listeners", "ada") as (_, links):
        state = httpx2.get(f"{links['ada']}state", timeout=30).json()
        assert (state["trials"], state["least_s"]) == (2, 1.5)
        sounds = [
            httpx2.get(f"{links['ada']}sounds/{sound}", timeout=30) for sound in state["sounds"].values()
        ]
        assert {len(sound.content) for sound in sounds} == {len(sounds[0].content)}
    assert [pair.name for pair in open_session(installed.folder / "test").plan.pairs] != []
