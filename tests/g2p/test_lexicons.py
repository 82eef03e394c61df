"""Lexicon files are found, watched, and read again; a bad one changes nothing and says so."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from kokoro_lab.config import Settings
from kokoro_lab.g2p.lexicons import Lexicons, default_entries

HEAD = "lang\tgrapheme\tphoneme\n"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and an empty folder `config` for the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kokoro_lab.g2p.lexicons.user_config_path", lambda *a, **k: tmp_path / "config")
    (tmp_path / "config").mkdir()
    return tmp_path


def write(path: Path, *rows: tuple[str, str]) -> None:
    """As an editor saves: beside it, then in its place."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(HEAD + "".join(f"en\t{grapheme}\t{phoneme}\n" for grapheme, phoneme in rows))
    beside.replace(path)


def says(lexicons: Lexicons, word: str = "zorp") -> str | None:
    return next((g.phonemes for g in lexicons.current().find(word, "en-us")), None)


def test_without_files_there_is_the_packages_own(folders: Path) -> None:
    lexicons = Lexicons()
    assert says(lexicons, "Xiaomi") == "ʃˈWmi"
    assert lexicons.problems() == ()
    assert lexicons.figures()["entries"] == {"user": 0, "project": 0, "default": len(default_entries())}


def test_a_user_without_a_home_has_the_packages_own(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr("kokoro_lab.g2p.lexicons.user_config_path", homeless)
    assert says(Lexicons(), "Xiaomi") == "ʃˈWmi"


@pytest.mark.parametrize("suffix", ["tsv", "csv", "json"])
def test_files_are_found_in_the_working_and_the_users_folder(folders: Path, suffix: str) -> None:
    rows = {"tsv": HEAD + "en\tzorp\ta\n", "csv": "lang,grapheme,phoneme\nen,zorp,a\n"}
    json = '[{"lang": "en", "grapheme": "zorp", "phoneme": "a"}]'
    (folders / f"lexicon.{suffix}").write_text(rows.get(suffix, json))
    assert says(Lexicons()) == "a"
    (folders / "config" / f"lexicon.{suffix}").write_text(rows.get(suffix, json).replace("zorp", "zarp"))
    assert (says(Lexicons()), says(Lexicons(), "zarp")) == ("a", "a")


def test_user_comes_before_project_and_that_before_default(folders: Path) -> None:
    write(folders / "lexicon.tsv", ("zorp", "a"), ("Xiaomi", "b"))
    write(folders / "config/lexicon.tsv", ("zorp", "c"))
    lexicons = Lexicons()
    assert [says(lexicons, word) for word in ("zorp", "Xiaomi", "Porsche")] == ["c", "b", "pˈɔɹʃə"]


def test_the_environment_names_files(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folders / "ours.tsv", ("zorp", "a"))
    write(folders / "mine.tsv", ("zarp", "b"))
    monkeypatch.setenv("KOKORO_PROJECT_LEXICON", str(folders / "ours.tsv"))
    monkeypatch.setenv("KOKORO_USER_LEXICON", str(folders / "mine.tsv"))
    monkeypatch.setattr("kokoro_lab.g2p.lexicons.settings", Settings)
    lexicons = Lexicons.from_settings()
    assert (says(lexicons), says(lexicons, "zarp")) == ("a", "b")


def test_a_change_is_heard(folders: Path) -> None:
    path = folders / "lexicon.tsv"
    lexicons = Lexicons(look_every_s=0)
    versions = [lexicons.current().version]
    for phoneme in ("a", "b"):
        write(path, ("zorp", phoneme))
        assert says(lexicons) == phoneme
        versions.append(lexicons.current().version)
    path.unlink()
    assert says(lexicons) is None
    assert len(set(versions)) == 3
    assert lexicons.current().version == versions[0]


def test_a_change_that_keeps_time_and_size_is_seen_by_its_inode(folders: Path) -> None:
    path = folders / "lexicon.tsv"
    write(path, ("zorp", "a"))
    os.utime(path, ns=(1, 1))
    lexicons = Lexicons(look_every_s=0)
    assert says(lexicons) == "a"
    held = path.open()  # so that its inode is not given to the new one
    write(path, ("zorp", "b"))
    os.utime(path, ns=(1, 1))
    assert says(lexicons) == "b"
    held.close()


def test_an_utterance_keeps_the_lexicon_that_it_began_with(folders: Path) -> None:
    write(folders / "lexicon.tsv", ("zorp", "a"))
    lexicons = Lexicons(look_every_s=0)
    began = lexicons.current()
    write(folders / "lexicon.tsv", ("zorp", "b"))
    assert says(lexicons) == "b"
    assert [g.phonemes for g in began.find("zorp", "en-us")] == ["a"]


def test_files_are_looked_at_now_and_then_only(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("kokoro_lab.g2p.lexicons.time.monotonic", lambda: now[0])
    lexicons = Lexicons()
    write(folders / "lexicon.tsv", ("zorp", "a"))
    now[0] += 0.4
    assert says(lexicons) is None
    now[0] += 0.2
    assert says(lexicons) == "a"


BAD: dict[str, Callable[[Path], object]] = {
    "a symbol that is none": lambda path: path.write_text(f"{HEAD}en\tzorp\tb\nen\tzarp\t❓\n"),
    "half a row": lambda path: path.write_text(f"{HEAD}en\tzor"),
    "too much": lambda path: path.write_text(" " * 1_100_000),
    "two files": lambda path: path.with_suffix(".json").write_text("[]"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_keeps_the_old_one_and_says_so_once(
    folders: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = folders / "lexicon.tsv"
    write(path, ("zorp", "a"))
    lexicons = Lexicons(look_every_s=0)
    with caplog.at_level(logging.WARNING):
        BAD[what](path)
        assert [says(lexicons) for _ in range(3)] == ["a"] * 3
    assert len(caplog.records) == 1
    (problem,) = lexicons.problems()
    assert problem.stage == "lexicon"
    assert "project's lexicon" in problem.reason
    assert lexicons.figures()["problems"] == [problem.reason]
    if what == "a symbol that is none":
        assert "lexicon.tsv, line 3: the symbol '❓'" in problem.reason
    path.with_suffix(".json").unlink(missing_ok=True)
    write(path, ("zorp", "c"))
    assert says(lexicons) == "c"
    assert lexicons.problems() == ()


def test_a_file_that_is_named_and_not_there_is_said_once_and_is_no_fallback_of_each_answer(
    folders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lexicons = Lexicons(project=folders / "ours.tsv", look_every_s=0)
    assert "ours.tsv: there is no such file" in lexicons.figures()["problems"][0]
    write(folders / "ours.tsv", ("zorp", "a"))
    assert says(lexicons) == "a"
    assert lexicons.problems() == ()
    (folders / "ours.tsv").unlink()
    caplog.clear()
    assert [says(lexicons) for _ in range(3)] == [None] * 3
    assert "there is no such file" in lexicons.figures()["problems"][0]
    assert len(caplog.records) == 1
    assert lexicons.problems() == (), "nothing is said otherwise than the server's lexicons have it"


def test_nobody_hears_half_a_change(folders: Path) -> None:
    path = folders / "lexicon.tsv"
    write(path, ("zorp", "a"), ("zarp", "a"))
    lexicons = Lexicons(look_every_s=0)
    halves: list[tuple[str, ...]] = []
    over = threading.Event()

    def listen() -> None:
        while not over.is_set():
            heard = tuple(g.phonemes for g in lexicons.current().find("zorp zarp", "en-us"))
            if heard not in (("a", "a"), ("b", "b")):
                halves.append(heard)

    threads = [threading.Thread(target=listen) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(40):
        write(path, ("zorp", "ab"[i % 2]), ("zarp", "ab"[i % 2]))
    over.set()
    for thread in threads:
        thread.join()
    assert halves == []
