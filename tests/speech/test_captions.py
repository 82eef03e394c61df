"""Captions show what is written, in lines, while it is heard."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.speech.captions import (
    LINE_COLUMNS,
    LINES,
    LONGEST_S,
    caption_format_of,
    captions,
    written_as,
)
from kokoro_lab.speech.engine import Engine
from kokoro_lab.text.sentences import columns_of
from tests.speech.test_live import LATIN, made_up

TEXT = (
    "Dr. Smith paid $3.50, at 5 p.m. “Really?” he said — yes. The river leaves the hills without hurry,"
    " turns twice around the old mill, and comes at last to the harbour & the sea.\n\nDone."
)


def test_they_are_ended_where_people_pause(hum: Engine) -> None:
    clip = hum.synthesize(TEXT, voice="hum")
    found = captions(TEXT, clip.timings)
    assert [" / ".join(one.lines) for one in found][:2] == [
        "Dr. Smith paid $3.50, at 5 p.m.",
        "“Really?” he said — yes. / The river leaves the hills without hurry,",
    ]
    assert found[-1].lines == ("Done.",)
    assert found[0].start_s == clip.timings[0].start_s


@pytest.mark.parametrize("seed", range(18))
def test_no_letter_is_lost_and_every_bound_is_kept(hum: Engine, seed: int) -> None:
    language, text = made_up(seed) if seed >= len(LATIN) else ("en-us", LATIN[seed])
    clip = hum.synthesize(text, voice="hum", language=language)
    found = captions(text, clip.timings)
    letters = "".join("".join("".join(one.lines) for one in found).split())
    assert letters in "".join(text.split())
    assert sum(map(str.isalnum, letters)) > 0.9 * sum(map(str.isalnum, text))
    for one in found:
        words = sum(len(line.split()) for line in one.lines)
        assert len(one.lines) <= LINES
        assert words == 1 or all(columns_of(line) <= LINE_COLUMNS for line in one.lines)
        assert words == 1 or one.end_s - one.start_s <= LONGEST_S + 1
    assert all(before.end_s <= after.start_s for before, after in pairwise(found))


def test_files_are_what_players_read(hum: Engine) -> None:
    text = "Salt & <pepper> are here."
    shown = captions(text, hum.synthesize(text, voice="hum").timings)
    assert written_as("srt", shown).startswith("1\n00:00:00,")
    assert "\nSalt & <pepper> are here.\n" in written_as("srt", shown)
    vtt = written_as("vtt", shown)
    assert vtt.startswith("WEBVTT\n\n00:00:00.")
    assert "\nSalt &amp; &lt;pepper&gt; are here.\n" in vtt


def test_inline_marks_are_not_shown(hum: Engine) -> None:
    text = "[voice:hum] The [kettle](/kˈɛtᵊl/) [pause:1s]is [pause:soon] on (/usr/)."
    clip = hum.synthesize(text, voice="hum", input_format="marked")
    (shown,) = captions(text, clip.timings, "marked")
    assert " ".join(shown.lines) == "The kettle is [pause:soon] on (/usr/)."


def test_marks_that_nobody_sees_are_not_shown(hum: Engine) -> None:
    text = "# A list\n\n- The **kettle** is on.\n- The `window` is open."
    clip = hum.synthesize(text, voice="hum", input_format="markdown")
    shown = captions(text, clip.timings, "markdown")
    said = " ".join(line for one in shown for line in one.lines)
    assert not set("#*`") & set(said)
    assert "The kettle is on." in said


MARKDOWN = """# Tom &amp; Jerry’s

| Name | Price list |
|------|------------|
| Ann & Bob | 3 |
| Eve | many words |

```py
x = 1
```

See [the docs](http://x.y/z)[^1] in ![a picture](a.png).
- [x] It is «done».

[^1]: This is a note.
"""


@pytest.mark.parametrize(
    ("code", "of_code"), [("skip", []), ("name", ["Code in Python"]), ("read", ["x = 1"])]
)
def test_captions_of_markdown_show_what_is_heard(hum: Engine, code: Any, of_code: list[str]) -> None:
    clip = hum.synthesize(MARKDOWN, voice="hum", input_format="markdown", code=code)
    shown = captions(MARKDOWN, clip.timings, "markdown", code=code)
    assert [line for one in shown for line in one.lines] == [
        "Tom & Jerry’s",
        "Name: Ann & Bob, Price list: 3",
        "Name: Eve, Price list: many words",
        *of_code,
        "See the docs in a picture.",
        "Done: It is «done».",
        "This is a note.",
    ]
    assert "\nTom &amp; Jerry’s\n" in written_as("vtt", shown)


def test_a_long_cell_of_a_table_is_cut_into_lines(hum: Engine) -> None:
    text = f"| Name | Words |\n|---|---|\n| Eve | {'many words ' * 9}|\n"
    clip = hum.synthesize(text, voice="hum", input_format="markdown")
    lines = [line for one in captions(text, clip.timings, "markdown") for line in one.lines]
    assert " ".join(lines) == f"Name: Eve, Words: {'many words ' * 9}".strip()
    assert all(columns_of(line) <= LINE_COLUMNS for line in lines)


def test_captions_of_ssml_show_what_is_written_between_its_tags(hum: Engine) -> None:
    text = (
        '<speak>Tom &amp; Jerry. <sub alias="a > b">x</sub> It&#39;s <![CDATA[<so>]]>'
        '<p>One<!-- no -->\n more.</p><p>Two <say-as interpret-as="cardinal">12</say-as><break/>end.</p>'
        '<phoneme ph="kˈɛtᵊl"/></speak>'
    )
    clip = hum.synthesize(text, voice="hum", input_format="ssml")
    shown = captions(text, clip.timings, "ssml")
    assert [line for one in shown for line in one.lines] == [
        "Tom & Jerry. x It's <so>",
        "One more.",
        "Two 12 end.",
    ]


def test_the_ending_of_a_file_says_which() -> None:
    assert caption_format_of(Path("a.SRT")) == "srt"
    with pytest.raises(ParameterError, match=r"a\.txt names no format of captions"):
        caption_format_of(Path("a.txt"))
