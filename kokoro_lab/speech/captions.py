"""Captions: the text in lines, each shown for as long as it is heard.

Captions are divided like those of films: at most two lines, which end where a sentence or a clause ends and
are shown long enough to be read.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

import regex

from kokoro_lab.datatypes import WordTiming
from kokoro_lab.errors import ParameterError
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.sentences import columns_of
from kokoro_lab.text.ssml.inline import MARK as INLINE_MARK
from kokoro_lab.text.ssml.markup import read

CaptionFormat = Literal["srt", "vtt"]
MEDIA_TYPES: dict[CaptionFormat, str] = {"srt": "application/x-subrip", "vtt": "text/vtt"}

LINE_COLUMNS, LINES = 42, 2
LONGEST_S, SHORTEST_S = 7.0, 1.0
PAUSE_S = 0.6
"""A silence longer than this should lie between two captions, and not within one."""

_SENTENCE_ENDS = regex.compile(r"[.!?…。！？।][\p{P}\s]*$|\n\s*$")
_CLAUSE_ENDS = regex.compile(r"[,;:—–、，；：][\p{P}\s]*$")
_OPENING = regex.compile(r"(?<=\s)[^\s\p{L}\p{N}]+$|[\p{Ps}\p{Pi}]+$")
"""Marks that open a quotation, with a space before them or, in Chinese, without: they belong to the next
word."""
_BLOCKS = ("p", "s")
"""Elements of SSML at whose borders a caption ends."""
_WHITE = regex.compile(r"[\t\r\n]")
_COSTS = ((_SENTENCE_ENDS, 0.0), (_CLAUSE_ENDS, 1.0))
_MID_CLAUSE = 3.0


@dataclass(frozen=True, slots=True)
class Caption:
    """Lines that are shown together, in seconds from the start of the speech."""

    start_s: float
    end_s: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Written:
    """A word as it is written, with the marks after it, and the time at which the word is heard."""

    text: str
    start_s: float
    end_s: float

    @property
    def cost(self) -> float:
        """The cost of ending a caption, or a line, after this word."""
        return next((cost for ends, cost in _COSTS if ends.search(self.text)), _MID_CLAUSE)


def caption_format_of(path: Path) -> CaptionFormat:
    """The format that the ending of a file's name asks for.

    Raises
    ------
    ParameterError
        The ending is that of no caption format.
    """
    for kind in MEDIA_TYPES:
        if path.suffix.lower() == f".{kind}":
            return kind
    raise ParameterError(
        f"The ending of {path.name} names no format of captions.",
        field="path",
        value=path.name,
        allowed=", ".join(f".{kind}" for kind in MEDIA_TYPES),
    )


def captions(
    text: str,
    timings: Sequence[WordTiming],
    input_format: str = "text",
    *,
    language: str = "en-us",
    code: str = "skip",
) -> list[Caption]:
    """The captions of a speech.

    Parameters
    ----------
    text : str
        The original text. Captions show plain text as it is written, and of other formats what a reader of
        the document sees.
    timings : sequence of WordTiming
        The timings of the whole speech.
    input_format : str
        Format of the text.
    language, code : str
        The language of the text, and what was said of its blocks of code, where it is Markdown.
    """
    if input_format in ("ssml", "markdown"):
        seen = _seen_in_ssml(text) if input_format == "ssml" else _seen_in_markdown(text, language, code)
        text, timings = seen.text, [_placed(timing, seen) for timing in timings]
    written = list(_written(text, timings))
    if input_format == "marked":
        written = [replace(word, text=INLINE_MARK.sub(r"\g<said>", word.text)) for word in written]
    groups = _grouped(written)
    starts = [group[0].start_s for group in groups]
    following = [*starts[1:], math.inf]
    return [
        Caption(start, min(max(group[-1].end_s, start + SHORTEST_S), after), _lines(group))
        for group, start, after in zip(groups, starts, following, strict=True)
        if _text(group)  # SSML may have a sound for which nothing is written
    ]


def _seen_in_ssml(source: str) -> AlignedText:
    """The text between the tags, with a line break at the borders of paragraphs and sentences."""
    parts: list[AlignedText] = []
    for event in read(source):
        end = parts[-1].ends[-1] if parts else 0
        if isinstance(event, AlignedText):
            parts.append(replace(event, text=_WHITE.sub(" ", event.text)))
        elif event.name in _BLOCKS:
            parts.append(AlignedText.standing_for("\n", end, end))
        elif event.name == "break":
            parts.append(AlignedText.standing_for(" ", end, end))
    return AlignedText.joined(parts)


def _seen_in_markdown(source: str, language: str, code: str) -> AlignedText:
    """The words that are read of the document, with its own quotation marks and apostrophes."""
    from kokoro_lab.text.markdown import parse

    said = parse(source, language, code).text
    places = zip(said.text, said.starts, said.ends, strict=True)
    shown = (
        source[start]
        if end - start == 1 and source[start] != character and _cleaned(source[start]) == character
        else character
        for character, start, end in places
    )
    return replace(said, text="".join(shown))


@lru_cache(maxsize=256)
def _cleaned(character: str) -> str:
    return sanitise(character).text


def _placed(timing: WordTiming, seen: AlignedText) -> WordTiming:
    """The timing with offsets into what is seen of the document."""
    span = timing.start, timing.end
    first = bisect_left(seen.starts, timing.start)
    last = bisect_left(seen.starts, timing.end, first)
    stands_for = [k for k in range(first, last) if (seen.starts[k], seen.ends[k]) == span]
    if len(stands_for) > 1:  # the name of a column, which stands for the cell behind it
        first, last = stands_for[0], stands_for[-1] + 1
    else:
        within = (k for k in range(first, last) if seen.ends[k] <= timing.end)
        first = next((k for k in within if seen.starts[k] < seen.ends[k]), first)
    return replace(timing, start=first, end=max(last, first + 1))


def _written(text: str, timings: Sequence[WordTiming]) -> Iterator[_Written]:
    """The words as they are written: `$100`, which is said as several words, is one."""
    at = 0
    rest = list(timings)
    while rest:
        start_s, end_s, stop = rest[0].start_s, rest[0].end_s, rest[0].end
        while rest and rest[0].start < stop:
            said = rest.pop(0)
            end_s, stop = max(end_s, said.end_s), max(stop, said.end)
        until = max(at, rest[0].start if rest else len(text))
        opening = _OPENING.search(text[stop:until]) if rest else None
        until = stop + opening.start() if opening else until
        yield _Written(text[at:until], start_s, end_s)
        at = until


def _grouped(written: Sequence[_Written]) -> list[Sequence[_Written]]:
    """The cheapest way to cut `written` into groups. Words whose cost as a group is infinite are never put
    into one group."""
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(written) + 1):
        choices = []
        for start in range(end - 1, -1, -1):
            own = _group_cost(written[start:end])
            if math.isinf(own) and end - start > 1:
                break
            choices.append((best[start][0] + (0.0 if math.isinf(own) else own), start))
        best.append(min(choices))
    groups: list[Sequence[_Written]] = []
    end = len(written)
    while end:
        start = best[end][1]
        groups.append(written[start:end])
        end = start
    return groups[::-1]


def _group_cost(group: Sequence[_Written]) -> float:
    length_s = group[-1].end_s - group[0].start_s
    if length_s > LONGEST_S or math.isinf(_grouped_lines(group)[0]):
        return math.inf
    gaps = (after.start_s - before.end_s for before, after in pairwise(group))
    pauses = sum(gap > PAUSE_S for gap in gaps) + 2 * sum("\n" in word.text for word in group[:-1])
    return group[-1].cost + 2.0 * pauses + 2.0 * (length_s < SHORTEST_S) + 0.5


def _grouped_lines(group: Sequence[_Written]) -> tuple[float, int]:
    """The cost of the best cut of a caption into two lines, and the number of words before the cut; 0 for one
    line."""
    if _columns(group) <= LINE_COLUMNS:
        return 0.0, 0
    found = [
        (group[cut - 1].cost + abs(_columns(group[:cut]) - _columns(group[cut:])) / LINE_COLUMNS, cut)
        for cut in range(1, len(group))
        if max(_columns(group[:cut]), _columns(group[cut:])) <= LINE_COLUMNS
    ]
    return min(found, default=(math.inf, 0))


def _lines(group: Sequence[_Written]) -> tuple[str, ...]:
    cut = _grouped_lines(group)[1]
    return tuple(_text(part) for part in (group[:cut], group[cut:]) if part)


def _text(group: Sequence[_Written]) -> str:
    return " ".join("".join(word.text for word in group).split())


def _columns(group: Sequence[_Written]) -> int:
    return columns_of(_text(group))


def captions_file(
    kind: CaptionFormat,
    text: str,
    input_format: str,
    timings: Sequence[WordTiming],
    *,
    language: str = "en-us",
    code: str = "skip",
) -> str:
    """The captions of a speech as a file of SubRip (`srt`) or WebVTT (`vtt`)."""
    return written_as(kind, captions(text, timings, input_format, language=language, code=code))


def written_as(kind: CaptionFormat, shown: Sequence[Caption]) -> str:
    """The text of a file with these captions."""
    srt = kind == "srt"
    mark, cues = (",", []) if srt else (".", ["WEBVTT\n"])
    for number, one in enumerate(shown, 1):
        shown_for = f"{_clock(one.start_s, mark)} --> {_clock(one.end_s, mark)}"
        lines = [str(number), shown_for, *one.lines] if srt else [shown_for, *map(_escaped, one.lines)]
        cues.append("\n".join([*lines, ""]))
    return "\n".join(cues)


def _escaped(line: str) -> str:
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(seconds: float, mark: str) -> str:
    ms = round(1000 * seconds)
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{mark}{ms % 1000:03}"
