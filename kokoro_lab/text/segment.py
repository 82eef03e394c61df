"""Cut text where a speaker would pause: into sentences before G2P, into segments after it.

What a segment may hold is counted in token ids, which only exist after G2P, so segments are packed
from words. Nothing is ever dropped to make a piece fit: a piece that is too long is cut again, at
the best place that there is, in the end inside a word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
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
"""Where so the first segment would still be longer than `FIRST_WHOLE_TOKENS`, this may be all of it: two or
three words, which are spoken as slowly as within their sentence (in the middle of 423 borders, by three
voices). Of 300 first sentences 11 are so cut, and the slowest of twenty has 49 token ids instead of 54."""

PARAGRAPH_CHARS = 20_000
"""Text is given to the sentence splitter in pieces of about this size, so that memory is bounded."""
SENTENCE_CHARS = 800
"""A longer sentence is cut before G2P, at a clause or a space."""
HARD_LINE_CHARS = 50
"""A line shorter than this that starts like a sentence is an item of a list, not wrapped prose."""

PAUSE_S = {
    **dict.fromkeys(".!?…:", 0.150),
    **dict.fromkeys(",;—", 0.080),
}
"""Silence added after a segment by the mark it ends with (S7: 120 to 180 ms, 60 to 100 ms)."""
PAUSE_PLAIN_S = 0.100
"""Silence added after a segment that ends without a mark (S7: 80 to 120 ms)."""
_STOP = r"\n|[.!?…][\"”')]*\s|[。！？][」』）]*"
_WIDE = r"[\p{Hiragana}\p{Katakana}\p{Han}ー、。「」]"
_WRAP = regex.compile(rf"((?<={_WIDE})\n(?={_WIDE}))|\s*\n\s*|  +")
CLOSERS = frozenset("\"”')“ ")


class Sentence(NamedTuple):
    """One sentence; `text` holds no line break. A line or paragraph that ends here is a pause."""

    text: AlignedText
    ends_line: bool
    ends_paragraph: bool


def sentences(text: AlignedText, language: str) -> Iterator[Sentence]:
    """Sentences of `text` in order, lazily, stripped, none of them empty or over `SENTENCE_CHARS`."""
    for paragraph in _paragraphs(text):
        pieces = [
            Sentence(piece, ends_line=last_of_line and not rest, ends_paragraph=False)
            for start, end in sentence_ranges(paragraph.text, language)
            for line, last_of_line in _hard_lines(paragraph.cut(start, end))
            for piece, rest in _bounded(line.strip())
        ]
        yield from pieces[:-1]
        yield from (piece._replace(ends_paragraph=True) for piece in pieces[-1:])


def marked_sentence(text: AlignedText) -> Iterator[Sentence]:
    """A text that is known to be one sentence, in pieces of at most `SENTENCE_CHARS`, none of them empty."""
    for piece, rest in _bounded(_unwrapped(text).strip()):
        yield Sentence(piece, ends_line=not rest, ends_paragraph=False)


def _paragraphs(text: AlignedText) -> Iterator[AlignedText]:
    """Paragraphs, the very long ones in pieces that end at a line or a sentence or a space."""
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
    """Cut at line breaks that stand for a full stop; the others become spaces.

    With each piece, whether a line ends there.
    """
    lines = [(m.start(), m.end()) for m in regex.finditer(r"[^\n]+", sentence.text)]
    start = 0
    for (a, b), (c, _) in pairwise(lines):
        following = sentence.text[c:].lstrip()[:1]
        if _width(sentence.text[a:b]) < HARD_LINE_CHARS and not following.islower():
            yield _unwrapped(sentence.cut(start, b)), True
            start = c
    yield _unwrapped(sentence.cut(start, len(sentence))), sentence.text.endswith("\n")


def _width(line: str) -> int:
    """Of a line as it is seen: kana and Han take the place of two letters."""
    return len(line) + sum(unicodedata.east_asian_width(c) in "WF" for c in line)


def _unwrapped(text: AlignedText) -> AlignedText:
    return text.rewrite((m.start(), m.end(), "" if m[1] else " ") for m in _WRAP.finditer(text.text))


def _bounded(sentence: AlignedText) -> Iterator[tuple[AlignedText, bool]]:
    """Pieces of at most `SENTENCE_CHARS`; with each, whether more of the sentence follows."""
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
    return word.phonemes.rstrip("".join(CLOSERS))[-1:] in PAUSE_S


class SpokenSentence(NamedTuple):
    """A sentence after G2P: its words with their token ids, and how many sentences came before it."""

    words: tuple[Word, ...]
    ids: tuple[tuple[int, ...], ...]
    ends_paragraph: bool
    number: int = 0

    @property
    def token_count(self) -> int:
        return _token_count(self.words, self.ids)


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
    for segment_id, (index, (words, ids)) in enumerate(_parts(spoken, first=first_id == 0), first_id):
        yield _segment(segment_id, words, ids, space_id, language, index)


_Words = tuple[Word, ...]
_Ids = tuple[tuple[int, ...], ...]
_Part = tuple[_Words, _Ids]


def _parts(spoken: Iterable[SpokenSentence], *, first: bool) -> Iterator[tuple[int, _Part]]:
    spoken = iter(spoken)
    gone = 0
    if first and (opening := next(spoken, None)):
        words, ids = _fitting(opening.words, opening.ids)
        gone = _certain_cut(words, ids)
        if gone:
            yield from _numbered(opening.number, words[:gone], ids[:gone])
        spoken = chain((opening,), spoken)
    for sentence in _joined(spoken):
        words, ids = _fitting(sentence.words, sentence.ids)
        if first and not gone:
            gone = _first_cut(words, ids)
            if gone:
                yield from _numbered(sentence.number, words[:gone], ids[:gone])
        yield from _numbered(sentence.number, words[gone:], ids[gone:])
        first, gone = False, 0


def _numbered(sentence: int, words: _Words, ids: _Ids) -> Iterator[tuple[int, _Part]]:
    return ((sentence, part) for part in _balanced(words, ids))


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


def _fitting(words: Sequence[Word], ids: Sequence[tuple[int, ...]]) -> _Part:
    """No single word longer than a segment may be: such a one becomes several with the same offsets."""
    if all(len(i) <= LONG_TOKENS for i in ids):
        return tuple(words), tuple(ids)
    new_words: list[Word] = []
    new_ids: list[tuple[int, ...]] = []
    for word, word_ids in zip(words, ids, strict=True):
        pieces = range(0, max(1, len(word_ids)), LONG_TOKENS)
        for at in pieces:
            last = at + LONG_TOKENS >= len(word_ids)
            phonemes = word.phonemes[at : at + LONG_TOKENS]
            new_words.append(replace(word, phonemes=phonemes, space_after=word.space_after and last))
            new_ids.append(word_ids[at : at + LONG_TOKENS])
    return tuple(new_words), tuple(new_ids)


def _token_count(words: Sequence[Word], ids: Sequence[tuple[int, ...]]) -> int:
    spaces = sum(word.space_after for word in words[:-1])
    return sum(map(len, ids)) + spaces


def _first_cut(words: Sequence[Word], ids: Sequence[tuple[int, ...]]) -> int:
    """After how many words to end the first segment: at the last of the best places that leave both a body.

    A mark, or the end of a sentence, may come a little later than a border between phrases. A long sentence
    that has no place early enough is cut at an earlier one that leaves less in front; if it has none such, at
    its first one after that. 0 if it is short, or there is no place.
    """
    total = _token_count(words, ids)
    if total <= FIRST_TOKENS:
        return 0
    least = MARK if total <= FIRST_WHOLE_TOKENS else PHRASE if total <= FIRST_LONG_TOKENS else WEAK
    cut = _ample_cut(words, ids, least)
    in_front = _token_count(words[:cut], ids[:cut]) if cut else total
    return cut if in_front <= FIRST_WHOLE_TOKENS else _early_cut(words, ids, least) or cut


def _ample_cut(words: Sequence[Word], ids: Sequence[tuple[int, ...]], least: int) -> int:
    """Of `_first_cut`: the last of the best places with `SHORT_TOKENS` or more in front, `least` at least."""
    total, best_strength = _token_count(words, ids), least
    best, count = 0, 0
    for i, strength in enumerate(borders(words)):
        count += len(ids[i]) + words[i].space_after
        if ends_with_pause(words[i]):
            strength = MARK
        if best and count > FIRST_TOKENS:
            if best_strength == MARK or count > FIRST_WHOLE_TOKENS:
                break
            if strength < MARK:
                continue
        if strength >= best_strength and SHORT_TOKENS <= count <= total - SHORT_TOKENS:
            best, best_strength = i + 1, strength
    return best


def _early_cut(words: Sequence[Word], ids: Sequence[tuple[int, ...]], least: int) -> int:
    """Of `_first_cut`: the last of the best places with `FIRST_LEAST_TOKENS` or more in front."""
    latest = min(FIRST_WHOLE_TOKENS, _token_count(words, ids) - SHORT_TOKENS)
    best, best_strength, count = 0, least, 0
    for i, strength in enumerate(borders(words)):
        count += len(ids[i]) + words[i].space_after
        if strength >= best_strength and FIRST_LEAST_TOKENS <= count <= latest:
            best, best_strength = i + 1, strength
    return best


def _certain_cut(words: Sequence[Word], ids: Sequence[tuple[int, ...]]) -> int:
    """`_first_cut` where that is the same whatever sentence may be joined to this one, else 0.

    So the first segment need not wait until the second sentence is read. A sentence of more than
    `FIRST_LONG_TOKENS` is cut alike with more behind it, unless that lets a place count which left too little
    behind it before; none does if those before the cut, and those that a mark may come later, all counted.
    """
    cut, total = _first_cut(words, ids), _token_count(words, ids)
    decided = max(FIRST_WHOLE_TOKENS, _token_count(words[:cut], ids[:cut]) + 1)
    return cut if total > FIRST_LONG_TOKENS and decided <= total - SHORT_TOKENS else 0


def _balanced(words: _Words, ids: _Ids) -> Iterator[_Part]:
    """Halve until nothing is over `LONG_TOKENS`, near the middle, at a clause where there is one."""
    total = _token_count(words, ids)
    if total <= LONG_TOKENS:
        yield words, ids
        return
    count, best, best_cost = 0, 1, float("inf")
    for i in range(len(words) - 1):
        count += len(ids[i]) + words[i].space_after
        off_middle = abs(count / total - 0.5)
        penalty = 0.0 if ends_clause(words[i]) else 0.3 if words[i].space_after else 0.6
        if off_middle + penalty < best_cost:
            best, best_cost = i + 1, off_middle + penalty
    yield from _balanced(words[:best], ids[:best])
    yield from _balanced(words[best:], ids[best:])


def _segment(
    segment_id: int,
    words: tuple[Word, ...],
    ids: tuple[tuple[int, ...], ...],
    space_id: int,
    language: str,
    sentence: int,
) -> Segment:
    token_ids: list[int] = []
    ranges: list[tuple[int, int]] = []
    phonemes: list[str] = []
    for i, (word, word_ids) in enumerate(zip(words, ids, strict=True)):
        ranges.append((len(token_ids), len(token_ids) + len(word_ids)))
        token_ids.extend(word_ids)
        phonemes.append(word.phonemes)
        if word.space_after and i < len(words) - 1:
            token_ids.append(space_id)
            phonemes.append(" ")
    if len(token_ids) > MAX_TOKENS:
        raise AssertionError(f"a segment of {len(token_ids)} token ids passed the budget of {MAX_TOKENS}")
    return Segment(
        segment_id=segment_id,
        start=min(word.start for word in words),
        end=max(word.end for word in words),
        words=words,
        phonemes="".join(phonemes),
        token_ids=tuple(token_ids),
        word_tokens=tuple(ranges),
        pause_after_s=_pause_s("".join(phonemes)),
        language=language,
        sentence=sentence,
    )


def _pause_s(phonemes: str) -> float:
    bare = phonemes.rstrip("".join(CLOSERS))
    return PAUSE_S.get(bare[-1:], PAUSE_PLAIN_S)
