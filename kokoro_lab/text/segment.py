"""Cut text where a speaker would pause: into sentences before G2P, into segments after it.

What a segment may hold is counted in token ids, which only exist after G2P, so segments are packed
from words. Nothing is ever dropped: what is too long is cut again, at the best border that it has, in
the end inside a word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from typing import NamedTuple

import regex

from kokoro_lab.datatypes import Segment, Word
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.boundaries import MARK, PHRASE, WEAK, borders, ends_clause, sentence_ranges

MAX_TOKENS = 510
"""Token ids of one inference, without pads: the length of the model's position table, less two."""
LONG_TOKENS = 300
"""A sentence longer than this is cut at a clause: Kokoro hurries through longer ones."""
SHORT_TOKENS = 20
"""A sentence shorter than this shares a segment with its neighbour: alone, Kokoro drawls it."""
JOINED_TOKENS = 100
"""Short sentences are joined up to this."""
FIRST_TOKENS = 40
"""A longer first sentence is cut at a mark within this, where it has one, so that sound starts early:
the time to first audio grows by about a millisecond a token id on two cores."""
FIRST_WHOLE_TOKENS = 50
"""A first sentence longer than this is cut between two phrases if no mark divides it within as many."""
FIRST_LONG_TOKENS = 60
"""A first sentence longer than this is cut at a weak border, too, if there is no better one."""
FIRST_LEAST_TOKENS = 12
"""The least that a first segment may hold, two or three words. It holds so few only where every other cut
would leave it longer than `FIRST_WHOLE_TOKENS`. The words are spoken as slowly as within their sentence
(median over 423 borders, three voices). Of 300 first sentences 11 are cut so early, and the 95th percentile
of the first segment falls from 54 token ids to 49."""

PARAGRAPH_CHARS = 20_000
"""A longer paragraph is cut before it is given to the sentence splitter, so that memory is bounded."""
SENTENCE_CHARS = 800
"""A longer sentence is cut before G2P, at a clause or a space."""
HARD_LINE_CHARS = 50
"""A line shorter than this that starts like a sentence is an item of a list, not wrapped prose."""

PAUSE_S = {
    **dict.fromkeys(".!?…:", 0.150),
    **dict.fromkeys(",;—", 0.080),
}
"""Silence added after a segment by the mark that it ends with: 120 to 180 ms, or 60 to 100 ms, are promised.
A mark within a segment is a pause of the model's own."""
PAUSE_PLAIN_S = 0.100
"""Silence added after a segment that ends without a mark: 80 to 120 ms are promised."""
_STOP = r"\n|[.!?…][\"”')]*\s|[。！？][」』）]*"
_WIDE = r"[\p{Hiragana}\p{Katakana}\p{Han}ー、。「」]"
_WRAP = regex.compile(rf"((?<={_WIDE})\n(?={_WIDE}))|\s*\n\s*|  +")
CLOSERS = "\"”')“ "


class Sentence(NamedTuple):
    """One sentence; `text` holds no line break. A line or paragraph that ends here is a pause."""

    text: AlignedText
    ends_line: bool
    ends_paragraph: bool


def sentences(text: AlignedText, language: str) -> Iterator[Sentence]:
    """Sentences of `text` in order, lazily, stripped, none of them empty or over `SENTENCE_CHARS`."""
    for paragraph in _paragraphs(text):
        found = [
            Sentence(part, ends_line=last_of_line and not more, ends_paragraph=False)
            for start, end in sentence_ranges(paragraph.text, language)
            for line, last_of_line in _hard_lines(paragraph.cut(start, end))
            for part, more in _bounded(line.strip())
        ]
        yield from found[:-1]
        yield from (last._replace(ends_paragraph=True) for last in found[-1:])


def marked_sentence(text: AlignedText) -> Iterator[Sentence]:
    """A text that is known to be one sentence, in parts of at most `SENTENCE_CHARS`, none of them empty."""
    for part, more in _bounded(_unwrapped(text).strip()):
        yield Sentence(part, ends_line=not more, ends_paragraph=False)


def _paragraphs(text: AlignedText) -> Iterator[AlignedText]:
    """Paragraphs, the very long ones in parts that end at a line, a sentence or a space."""
    start = 0
    for match in regex.finditer(r"\n\s*\n|\Z", text.text):
        while match.start() - start > PARAGRAPH_CHARS:
            limit = start + PARAGRAPH_CHARS
            stop = _last(_STOP, text.text, start, limit) or _last(r"\s", text.text, start, limit) or limit
            yield text.cut(start, stop)
            start = stop
        if text.text[start : match.start()].strip():
            yield text.cut(start, match.start())
        start = match.end()


def _last(pattern: str, text: str, start: int, stop: int) -> int | None:
    ends = [m.end() for m in regex.finditer(pattern, text, pos=start, endpos=stop)]
    return ends[-1] if ends else None


def _hard_lines(sentence: AlignedText) -> Iterator[tuple[AlignedText, bool]]:
    """Lines that end like a sentence, and whether a line ends there; other line breaks become spaces."""
    lines = [(m.start(), m.end()) for m in regex.finditer(r"[^\n]+", sentence.text)]
    start = 0
    for (a, b), (c, _) in pairwise(lines):
        following = sentence.text[c:].lstrip()[:1]
        if _width(sentence.text[a:b]) < HARD_LINE_CHARS and not following.islower():
            yield _unwrapped(sentence.cut(start, b)), True
            start = c
    yield _unwrapped(sentence.cut(start, len(sentence))), sentence.text.endswith("\n")


def _width(line: str) -> int:
    """Of a line as it is seen: kana and Han are as wide as two letters."""
    return len(line) + sum(unicodedata.east_asian_width(c) in "WF" for c in line)


def _unwrapped(text: AlignedText) -> AlignedText:
    return text.rewrite((m.start(), m.end(), "" if m[1] else " ") for m in _WRAP.finditer(text.text))


def _bounded(sentence: AlignedText) -> Iterator[tuple[AlignedText, bool]]:
    """Parts of at most `SENTENCE_CHARS`; with each, whether more of the sentence follows."""
    while len(sentence) > SENTENCE_CHARS:
        half = SENTENCE_CHARS // 2
        stop = (
            _last(r"[,;:—…]\s|[、，；：]", sentence.text, half, SENTENCE_CHARS)
            or _last(r"\s", sentence.text, half, SENTENCE_CHARS)
            or SENTENCE_CHARS
        )
        yield sentence.cut(0, stop).strip(), True
        sentence = sentence.cut(stop, len(sentence)).strip()
    if len(sentence):
        yield sentence, False


def ended(word: Word) -> Word:
    """A heading or an item of a list ends like a sentence, whether or not its author put a stop."""
    return word if ends_with_pause(word) else replace(word, phonemes=word.phonemes + ".")


def ends_with_pause(word: Word) -> bool:
    """Whether a speaker would pause behind the word, for the mark that it ends with."""
    return word.phonemes.rstrip(CLOSERS)[-1:] in PAUSE_S


class SpokenSentence(NamedTuple):
    """A sentence after G2P, or a part of one: its words, their token ids, and its number in the text."""

    words: tuple[Word, ...]
    ids: tuple[tuple[int, ...], ...]
    ends_paragraph: bool
    number: int = 0

    @property
    def token_count(self) -> int:
        """Token ids of its words and of the spaces between them."""
        return sum(map(len, self.ids)) + sum(word.space_after for word in self.words[:-1])

    def cut(self, start: int, stop: int | None = None) -> SpokenSentence:
        """The part from one word up to another, or to the end."""
        return self._replace(words=self.words[start:stop], ids=self.ids[start:stop])


def pack(
    spoken: Iterable[SpokenSentence], *, space_id: int, language: str, first_id: int = 0
) -> Iterator[Segment]:
    """Segments of at most `MAX_TOKENS`, lazily: one sentence each, but that

    - a sentence under `SHORT_TOKENS` is joined to its neighbour in the paragraph, up to `JOINED_TOKENS`;
    - a sentence over `LONG_TOKENS` is cut into balanced parts, at clauses rather than at spaces;
    - a first sentence over `FIRST_TOKENS` is cut near that or before it, where a speaker would pause.

    Every word of `spoken` is in exactly one segment, in order. Where `spoken` begins with a later sentence,
    one with which a segment begins, `first_id` is that segment's: then the segments are the same as from
    the beginning.
    """
    for segment_id, part in enumerate(_parts(spoken, first=first_id == 0), first_id):
        yield _segment(segment_id, part, space_id, language)


def _parts(spoken: Iterable[SpokenSentence], *, first: bool) -> Iterator[SpokenSentence]:
    spoken = iter(spoken)
    gone = 0
    if first and (opening := next(spoken, None)):
        fitting = _fitting(opening)
        gone = _certain_cut(fitting)
        if gone:
            yield from _balanced(fitting.cut(0, gone))
        spoken = chain((opening,), spoken)
    for joined in _joined(spoken):
        sentence = _fitting(joined)
        if first and not gone:
            gone = _first_cut(sentence)
            if gone:
                yield from _balanced(sentence.cut(0, gone))
        yield from _balanced(sentence.cut(gone))
        first, gone = False, 0


def _joined(spoken: Iterable[SpokenSentence]) -> Iterator[SpokenSentence]:
    held: SpokenSentence | None = None
    for sentence in spoken:
        if held is not None:
            short = held.token_count < SHORT_TOKENS or sentence.token_count < SHORT_TOKENS
            fits = held.token_count + 1 + sentence.token_count <= JOINED_TOKENS
            if short and fits and not held.ends_paragraph:
                words = (*held.words[:-1], replace(held.words[-1], space_after=True), *sentence.words)
                held = SpokenSentence(words, held.ids + sentence.ids, sentence.ends_paragraph, held.number)
                continue
            yield held
        held = sentence
        # No neighbour can join these: do not wait for one
        if held.token_count >= JOINED_TOKENS or held.ends_paragraph:
            yield held
            held = None
    if held is not None:
        yield held


def _fitting(sentence: SpokenSentence) -> SpokenSentence:
    """No single word longer than a segment may be: such a one becomes several with the same offsets."""
    if all(len(i) <= LONG_TOKENS for i in sentence.ids):
        return sentence
    words: list[Word] = []
    ids: list[tuple[int, ...]] = []
    for word, word_ids in zip(sentence.words, sentence.ids, strict=True):
        for at in range(0, max(1, len(word_ids)), LONG_TOKENS):
            last = at + LONG_TOKENS >= len(word_ids)
            phonemes = word.phonemes[at : at + LONG_TOKENS]
            words.append(replace(word, phonemes=phonemes, space_after=word.space_after and last))
            ids.append(word_ids[at : at + LONG_TOKENS])
    return sentence._replace(words=tuple(words), ids=tuple(ids))


class _Cut(NamedTuple):
    """A border between words: how good it is to pause at, and how many words and token ids stand before."""

    strength: int
    words: int
    tokens: int


def _cuts(sentence: SpokenSentence, least: int, *, at_stops: bool) -> Iterator[_Cut]:
    """The borders between its words, in order, that are as good as `least`.

    With `at_stops`, a mark at which a sentence may end is as good as one that divides clauses.
    """
    tokens = 0
    for i, strength in enumerate(borders(sentence.words)):
        word = sentence.words[i]
        tokens += len(sentence.ids[i]) + word.space_after
        if at_stops and ends_with_pause(word):
            strength = MARK
        if strength >= least:
            yield _Cut(strength, i + 1, tokens)


def _first_cut(sentence: SpokenSentence) -> int:
    """The number of words in the first segment; 0 if the sentence is short, or has no border to cut it at.

    A sentence of up to `FIRST_WHOLE_TOKENS` is cut at a mark only, one of up to `FIRST_LONG_TOKENS` between
    two phrases as well, and a longer one at a weak border, too. If the first segment would be longer than
    `FIRST_WHOLE_TOKENS`, an earlier cut is taken that leaves less in it than `SHORT_TOKENS`, where there is
    one.
    """
    total = sentence.token_count
    if total <= FIRST_TOKENS:
        return 0
    least = MARK if total <= FIRST_WHOLE_TOKENS else PHRASE if total <= FIRST_LONG_TOKENS else WEAK
    cut = _ample_cut(sentence, least)
    in_front = sentence.cut(0, cut).token_count if cut else total
    return cut if in_front <= FIRST_WHOLE_TOKENS else _early_cut(sentence, least) or cut


def _ample_cut(sentence: SpokenSentence, least: int) -> int:
    """The number of words before the best border with `SHORT_TOKENS` or more on either side; 0 without one.

    The best is the last of the strongest within `FIRST_TOKENS`, or else the first behind these. A mark, or
    the end of a sentence, that comes a little later, within `FIRST_WHOLE_TOKENS`, is better than a weaker
    border.
    """
    latest = sentence.token_count - SHORT_TOKENS
    found = _cuts(sentence, least, at_stops=True)
    cuts = [cut for cut in found if SHORT_TOKENS <= cut.tokens <= latest]
    soon = [cut for cut in cuts if cut.tokens <= FIRST_TOKENS]
    best = max(soon) if soon else cuts[0] if cuts else None
    if best is None or best.strength == MARK:
        return best.words if best else 0
    later = (cut.words for cut in cuts if cut.strength == MARK and cut.tokens <= FIRST_WHOLE_TOKENS)
    return next(later, best.words)


def _early_cut(sentence: SpokenSentence, least: int) -> int:
    """The number of words before the last of the strongest borders behind `FIRST_LEAST_TOKENS` or more."""
    latest = min(FIRST_WHOLE_TOKENS, sentence.token_count - SHORT_TOKENS)
    found = _cuts(sentence, least, at_stops=False)
    cuts = [cut for cut in found if FIRST_LEAST_TOKENS <= cut.tokens <= latest]
    return max(cuts).words if cuts else 0


def _certain_cut(sentence: SpokenSentence) -> int:
    """`_first_cut` where it is the same whatever sentence may be joined to this one, else 0.

    With it the first segment need not wait until the second sentence is read. A joined sentence could change
    the cut in one way: a border that left less than `SHORT_TOKENS` behind it would leave more, and so become
    one to cut at. In a sentence longer than `FIRST_LONG_TOKENS` the cut is certain if no such border could be
    chosen: if those up to the cut, and up to `FIRST_WHOLE_TOKENS`, all leave enough behind them already.
    """
    cut, total = _first_cut(sentence), sentence.token_count
    decided = max(FIRST_WHOLE_TOKENS, sentence.cut(0, cut).token_count + 1)
    return cut if total > FIRST_LONG_TOKENS and decided <= total - SHORT_TOKENS else 0


def _balanced(sentence: SpokenSentence) -> Iterator[SpokenSentence]:
    """Halve until nothing is over `LONG_TOKENS`, near the middle, at a clause where there is one."""
    total = sentence.token_count
    if total <= LONG_TOKENS:
        yield sentence
        return
    count, best, best_cost = 0, 1, float("inf")
    for i, word in enumerate(sentence.words[:-1]):
        count += len(sentence.ids[i]) + word.space_after
        off_middle = abs(count / total - 0.5)
        penalty = 0.0 if ends_clause(word) else 0.3 if word.space_after else 0.6
        if off_middle + penalty < best_cost:
            best, best_cost = i + 1, off_middle + penalty
    yield from _balanced(sentence.cut(0, best))
    yield from _balanced(sentence.cut(best))


def _segment(segment_id: int, part: SpokenSentence, space_id: int, language: str) -> Segment:
    token_ids: list[int] = []
    ranges: list[tuple[int, int]] = []
    phonemes: list[str] = []
    for i, (word, word_ids) in enumerate(zip(part.words, part.ids, strict=True)):
        ranges.append((len(token_ids), len(token_ids) + len(word_ids)))
        token_ids.extend(word_ids)
        phonemes.append(word.phonemes)
        if word.space_after and i < len(part.words) - 1:
            token_ids.append(space_id)
            phonemes.append(" ")
    if len(token_ids) > MAX_TOKENS:
        raise AssertionError(f"a segment of {len(token_ids)} token ids passed the budget of {MAX_TOKENS}")
    said = "".join(phonemes)
    return Segment(
        segment_id=segment_id,
        start=min(word.start for word in part.words),
        end=max(word.end for word in part.words),
        words=part.words,
        phonemes=said,
        token_ids=tuple(token_ids),
        word_tokens=tuple(ranges),
        pause_after_s=PAUSE_S.get(said.rstrip(CLOSERS)[-1:], PAUSE_PLAIN_S),
        language=language,
        sentence=part.number,
    )
