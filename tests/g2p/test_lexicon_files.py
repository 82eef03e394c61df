"""A lexicon is read whole or refused, with the file, the line and what would have been right."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from kokoro_lab.datatypes import LexiconEntry
from kokoro_lab.errors import LexiconError
from kokoro_lab.g2p.lexicon_entries import request_entries
from kokoro_lab.g2p.lexicon_files import MAX_FILE_ENTRIES, read_lexicon

NGINX = LexiconEntry("en", "nginx", "ˈɛnʤən ˈɛks")
ROW = {"lang": "en", "grapheme": "nginx", "phoneme": "ˈɛnʤən ˈɛks"}
HEAD = "lang\tgrapheme\tphoneme\tflags\n"


def refused(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(LexiconError) as caught:
        read_lexicon(path)
    assert caught.value.field
    assert caught.value.field.startswith(str(path))
    assert caught.value.message.startswith(path.name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", f"{HEAD}en\tnginx\tˈɛnʤən ˈɛks\n"),
        (
            "a.tsv",
            "\ufeff# ours\r\n\r\nphoneme\tlang\tgrapheme\r\nˈɛnʤən ˈɛks\tEN\tnginx\t\r\n".replace(
                "\t\r", "\r"
            ),
        ),
        ("a.csv", 'lang,grapheme,phoneme\nen,"nginx",ˈɛnʤən ˈɛks\n'),
        ("a.JSON", json.dumps([ROW])),
        ("a.json", json.dumps([{**ROW, "flags": []}], indent=2)),
    ],
)
def test_three_formats_say_the_same(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    assert read_lexicon(tmp_path / name) == (NGINX,)


def test_a_grapheme_may_hold_spaces_marks_commas_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('lang,grapheme,phoneme,flags\nen,"Yes,\n  C++’s",sˈi,plural case\n')
    assert read_lexicon(path) == (LexiconEntry("en", "Yes, C++'s", "sˈi", ("case", "plural")),)


def test_an_empty_list_is_a_lexicon(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(" [ ] \n")
    (tmp_path / "a.tsv").write_text(HEAD)
    assert read_lexicon(tmp_path / "a.json") == read_lexicon(tmp_path / "a.tsv") == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "without a header row"),
        ("lang\tgrapheme\nen\tx\n", "line 1: the column 'phoneme' is missing"),
        ("lang\tgrapheme\tphoneme\tnote\n", "line 1: no column 'note'"),
        ("lang\tlang\tgrapheme\tphoneme\n", "line 1: the column 'lang' is there twice"),
        (f"{HEAD}en\tnginx\n", "line 2: the phoneme is missing"),
        (f"{HEAD}\tnginx\tˈɛks\n", "line 2: the lang is missing"),
        (f"{HEAD}en\tnginx\tˈɛks\t\textra\n", "line 2: 5 cells under 4 columns"),
        (
            f"{HEAD}en\tnginx\tˈɛks\n\nen\tgig\tˈgɪg\n",
            "line 4: the symbol 'g' (U+0067) is not in the vocabulary",
        ),
        (f"{HEAD}en\tgig\tgɪg\n", "write ɡ (U+0261)"),
        (f"{HEAD}en\tnginx\t/ˈɛks/\n", "write the phonemes without slashes"),
        (f"{HEAD}en\tnginx\tˈ\n", "line 2: the phonemes hold no sound"),
        (f"{HEAD}en\tnginx\t{'a' * 201}\n", "line 2: the phonemes are 201 symbols"),
        (f"{HEAD}en\t{'n' * 101}\ta\n", "line 2: the grapheme has 101 characters"),
        (f"{HEAD}en\t\u200b\ta\n", "line 2: the grapheme has 0 characters"),
        (f"{HEAD}en\t...\ta\n", "marks of punctuation alone"),
        (f"{HEAD}tlh\tnginx\ta\n", "line 2: nothing here speaks 'tlh'"),
        (f"{HEAD}en\tnginx\ta\tcase loud\n", "line 2: there is no flag 'loud'. Allowed: case, plural"),
        (
            f"{HEAD}en\tnginx\ta\nen-gb\tnginx\tb\nen\tNGINX\tc\n",
            "line 4: 'NGINX' has an entry already: a.tsv, line 2",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path: Path, content: str, said: str) -> None:
    assert said in refused(tmp_path / "a.tsv", content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "not a list of objects"),
        ("[1]", "line 1: an entry must be an object, not int"),
        (
            f"[\n{json.dumps(ROW)},\n\n{json.dumps({**ROW, 'grapheme': 5})}]",
            "line 4: the grapheme must be a text",
        ),
        (f"[{json.dumps({**ROW, 'ipa': 'x'})}]", "there is no field 'ipa'"),
        (f"[{json.dumps({**ROW, 'flags': 5})}]", "flags cannot be of the type int"),
        (f"[{json.dumps({**ROW, 'flags': [['case']]})}]", "there is no flag"),
        ('[{"lang": "en", "lang": "es"}]', "twice in one object"),
        (f"[{json.dumps(ROW)}", "the end of the list is missing"),
        (f"[{json.dumps(ROW)},]", "not JSON"),
        (f"[{json.dumps(ROW)}] x", "something follows the list"),
        ("[" * 100_000, "not JSON"),
        ('[{"lang": }]', "line 1: not JSON: Expecting value"),
    ],
)
def test_wrong_json_is_refused_with_its_line(tmp_path: Path, content: str, said: str) -> None:
    assert said in refused(tmp_path / "a.json", content)


def test_wrong_csv_is_refused_with_its_line(tmp_path: Path) -> None:
    said = refused(tmp_path / "a.csv", 'lang,grapheme,phoneme\nen,a,a\nen,"b"c,a\n')
    assert "line 3: not CSV" in said


def test_what_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    assert "line 2: not UTF-8" in refused(tmp_path / "a.tsv", HEAD.encode() + b"en\tcaf\xe9\ta\n")


def test_other_types_folders_and_what_is_not_there_are_refused(tmp_path: Path) -> None:
    assert "Allowed: .tsv, .csv, .json" in refused(tmp_path / "a.txt", HEAD)
    for path, said in (
        (tmp_path / "none.tsv", "cannot be read"),
        (tmp_path / "folder.tsv", "Is a directory"),
    ):
        if path.stem == "folder":
            path.mkdir()
        with pytest.raises(LexiconError, match=said):
            read_lexicon(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.tsv")
    with pytest.raises(LexiconError, match="not a file"):
        read_lexicon(tmp_path / "a.tsv")


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".json"])
def test_ten_gigabytes_are_refused_without_being_read(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a{suffix}").write_bytes(b"[")
    os.truncate(tmp_path / f"a{suffix}", 10_000_000_000)  # takes no room: nothing but its end is there
    started = time.perf_counter()
    with pytest.raises(LexiconError, match="too large"):
        read_lexicon(tmp_path / f"a{suffix}")
    assert time.perf_counter() - started < 2


def test_entries_are_counted(tmp_path: Path) -> None:
    rows = "".join(f"en\tx{i}\ta\n" for i in range(MAX_FILE_ENTRIES + 1))
    assert f"line {MAX_FILE_ENTRIES + 2}: more than" in refused(tmp_path / "a.tsv", HEAD + rows)


# ---------------------------------------------------------------------------------- of a request


def test_a_request_may_say_it_briefly_or_in_full() -> None:
    wanted = (LexiconEntry("*", "nginx", "ˈɛks"),)
    assert request_entries({"nginx": "ˈɛks"}) == wanted
    assert request_entries([{"grapheme": "nginx", "phoneme": "ˈɛks"}]) == wanted
    assert request_entries([LexiconEntry("*", "nginx", "ˈɛks")]) == request_entries(wanted) == wanted
    full = {"lang": "en_GB", "grapheme": "GPU", "phoneme": "a", "flags": ["plural", "case"]}
    assert request_entries([full]) == (LexiconEntry("en-gb", "GPU", "a", ("case", "plural")),)
    assert request_entries(None) == request_entries({}) == request_entries([]) == ()


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("nginx", "cannot be of the type str"),
        (5, "cannot be of the type int"),
        ({"nginx": 5}, "Entry 1 of the lexicon: the phoneme must be a text, not int"),
        ({"a": "a", "nginx": "ˈ❓"}, "Entry 2 of the lexicon: the symbol '❓'"),
        ({5: "a"}, "the grapheme must be a text"),
        ([["nginx", "a"]], "Entry 1 of the lexicon: an entry must be an object, not list"),
        ([{"grapheme": "nginx"}], "the phoneme is missing"),
        ([{"grapheme": "x", "phoneme": "a", "lang": "xx"}], "nothing here speaks 'xx'"),
        ({"nginx": "a", "NGINX": "b"}, "Entry 2 of the lexicon: 'NGINX' has an entry already"),
        ({f"x{i}": "a" for i in range(101)}, "has 101 entries. Allowed: up to 100 entries"),
        ({f"x{i:090}": "a" for i in range(90)}, "bytes. Allowed: up to 8000 bytes"),
        ({"x": "a" * 8000}, "up to 8000 bytes"),
        ({"\ud800" * 3000: "a"}, "up to 8000 bytes"),
        ({"\x00" * 20: "a"}, "binary"),
        ((LexiconEntry("*", "x", "❓"),), "not in the vocabulary"),
    ],
)
def test_a_wrong_request_lexicon_is_refused(raw: object, said: str) -> None:
    with pytest.raises(LexiconError) as caught:
        request_entries(raw)
    assert said in str(caught.value)
    assert str(caught.value.field).startswith("lexicon")


def test_what_was_read_from_a_file_has_the_files_bounds() -> None:
    entries = tuple(LexiconEntry("*", f"x{i}", "a") for i in range(500))
    assert request_entries(entries) == entries
