"""Megabytes of what people paste: nothing raised or lost in silence, twice the work for twice the text."""

from __future__ import annotations

import time

import pytest
import regex

from kokoro_lab.datatypes import Fallback
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.text import marks
from kokoro_lab.text.growing import ReadAhead
from kokoro_lab.text.marks import unmarked
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.sentences import Sentences

KINDS = {
    "markdown": """## Heading {n}

Some **bold** text with a [link](https://example.org/a_b?c={n}), `code` and *more of it*.

> A quoted line that goes on
> and on.

| A | B |
|---|---|
| {n} | two |

- [x] An item
- Another $x^2$

```python
x = {n}
```

""",
    "html": """<div class="a"><p>It is <b>number {n}</b> &amp; more.<br/>So it is&hellip;</p><ul><li>One</li>
<li>Two</li></ul><!-- comment {n} --></div>
""",
    "subtitles": """{n}
00:00:01,000 --> 00:00:02,500
<i>Well, hello there.</i>
- Yes.

""",
    "log": """2024-11-25T17:22:02.123Z INFO [worker-{n}] GET /api/items/{n}?q=a_b&c=*d* 200 12ms user=<none>
    at path=/var/log/app_{n}.log id=550e8400-e29b-41d4-a716-446655440000
""",
    "unclosed": "[a](b **c __d `e <f &g $h ~~i ==j | k \\( l {n} ",
    "scripts without an end": "<p>Number {n}</p><script>\nIt <style> is <!-- here.\n",
}
UNSEEN = {
    "markdown": {"python", "x"},
    "html": {"a", "b", "br", "class", "div", "li", "p", "ul"},
    "subtitles": {"i"},
    "log": set[str](),
    "unclosed": set[str](),
    "scripts without an end": {"p", "script", "style"},
}
"""Marks that are letters: nobody reads them."""


def made(kind: str, least_chars: int) -> str:
    text, n = [], 0
    while len(KINDS[kind]) * n < least_chars:
        text.append(KINDS[kind].replace("{n}", str(1000 + n)))
        n += 1
    return "".join(text)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_out_in_silence(front_end: FrontEnd, kind: str) -> None:
    text = made(kind, 2000)
    noted: list[Fallback] = []
    heard: set[int] = set()
    for segment in front_end.segments(text, "en-us", noted.append):
        for word in segment.words:
            heard.update(range(word.start, word.end))
    for each in noted:
        heard.update(range(each.start or 0, each.end or 0))
    lost = {
        run.group() for run in regex.finditer(r"\p{L}+|\p{N}+", text) if heard.isdisjoint(range(*run.span()))
    }
    assert lost <= UNSEEN[kind]


def characters_looked_at(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many are handed to whoever looks for sentences and their marks."""
    looked = 0
    rest = ReadAhead.rest

    def counted(self: ReadAhead, least: int, most: int) -> str:
        nonlocal looked
        found = rest(self, least, most)
        looked += len(found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(ReadAhead, "rest", counted)
        for sentence in Sentences(ReadAhead(sanitise(text).strip()), "en-us"):
            looked += len(sentence.text)
            for part in unmarked(sentence.text, "en-us", begins_line=sentence.begins_line).parts:
                looked += len(part)
    return looked


@pytest.mark.parametrize("kind", KINDS)
def test_twice_as_long_is_looked_at_twice_as_much(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    half, whole = (characters_looked_at(made(kind, size), monkeypatch) for size in (20_000, 40_000))
    assert whole < 2.2 * half


def test_a_text_without_marks_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(marks, "_LOOKS_SO")
    sentence = sanitise("It costs $5, 3 > 2, snake_case, AT&T, a plain sentence.")
    assert unmarked(sentence, "en-us", begins_line=True).parts == [sentence]


@pytest.mark.test_long
@pytest.mark.parametrize("kind", KINDS)
def test_a_megabyte_takes_twice_as_long_as_half(front_end: FrontEnd, kind: str) -> None:
    seconds = []
    for size in (500_000, 1_000_000):
        started = time.process_time()
        segments = sum(1 for _ in front_end.segments(made(kind, size), "en-us", lambda _: None))
        seconds.append(time.process_time() - started)
        assert segments > size / 300
    assert seconds[1] < 2.5 * seconds[0]
