"""Pack sentences into segments, after G2P: cut and joined where a speaker would pause.

The length of a segment is limited in token ids, which only exist after G2P, so segments are packed from
words. No text is ever dropped: a sentence that is too long is cut at the best border that it has, if need be
inside a word.

A segment depends on its own words and on at most `JOINED_COLUMNS` of text after them, so that a text can be
spoken while it is written. The first segment of a long sentence depends only on the sentence's first
`OPENING_COLUMNS`. A sentence over `LONG_TOKENS` is halved; each part then depends on the whole sentence, at
most `SENTENCE_CHARS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from kokoro_lab.datatypes import Segment, Word
from kokoro_lab.text.boundaries import MARK, PHRASE, WEAK, borders, ends_clause

MAX_TOKENS = 510
"""Token ids of one inference, without pads: the length of the model's position table, less two."""
LONG_TOKENS = 300
"""A sentence longer than this is cut at a clause: Kokoro hurries through longer ones."""
SHORT_TOKENS = 20
"""A sentence shorter than this shares a segment with its neighbour: alone, Kokoro drawls it."""
LEAST_TOKENS = {"zh": 50}
"""The least length to which a first sentence is cut, for languages where it is not `SHORT_TOKENS`: a syllable
of Mandarin has five ids with its tone, and parts of less than ten syllables are misheard more often."""
JOINED_TOKENS = 100
"""Short sentences are joined up to this number of token ids."""
JOINED_COLUMNS, SHORT_COLUMNS = 96, 30
"""`SHORT_COLUMNS` is the greatest width of a short sentence, and `JOINED_COLUMNS` (about 16 words) that of a
sentence that is joined to it. Widths in columns are used because a sentence that is still being written can
be known to be wider before its end is there."""
OPENING_COLUMNS = 120
"""A first sentence wider than this is cut as soon as this much of it (about 20 words) is read."""
FIRST_TOKENS = 40
"""A first sentence longer than this is cut at a mark within this length, if it has one, so that sound starts
early: on two cores, time to first audio grows by about a millisecond for each token id."""
FIRST_WHOLE_TOKENS = 50
"""A first sentence that is longer than this, and has no mark within this length, is cut between two
phrases."""
FIRST_LONG_TOKENS = 60
"""A first sentence that is longer than this, and has no better border, is cut at a weak one."""
FIRST_LEAST_TOKENS = 12
"""The shortest first segment: two or three words. A first segment is as short as this only if every other cut
would leave it longer than `FIRST_WHOLE_TOKENS`. Its words are spoken as slowly as within their sentence
(median over 423 borders, three voices). 11 of 300 first sentences are cut so early, and the 95th percentile
of the first segment's length falls from 54 token ids to 49."""

PAUSE_S = {
    **dict.fromkeys(".!?…:", 0.150),
    **dict.fromkeys(",;—", 0.080),
}
"""Silence added after a segment, by the mark at its end: 120 to 180 ms, or 60 to 100 ms, are promised. Pauses
at marks within a segment are adjusted in `model.pauses`."""
PAUSE_PLAIN_S = 0.100
"""Silence added after a segment that ends without a mark: 80 to 120 ms are promised."""
CLOSERS = "\"”')“ "


def ended(word: Word) -> Word:
    """The last word of a heading or a list item. It gets a full stop, unless it ends with a mark of a pause
    already."""
    return word if ends_with_pause(word) else replace(word, phonemes=word.phonemes + ".")


def ends_with_pause(word: Word) -> bool:
    """Whether a speaker would pause after the word, because of the mark at its end."""
    return word.phonemes.rstrip(CLOSERS)[-1:] in PAUSE_S


class SpokenSentence(NamedTuple):
    """A sentence after G2P, or a part of one: its words, their token ids, and its number in the text."""

    words: tuple[Word, ...]
    ids: tuple[tuple[int, ...], ...]
    ends_paragraph: bool
    number: int = 0
    columns: int = 0
    """The width of the sentence on the screen, in columns."""

    @property
    def token_count(self) -> int:
        """Token ids of its words and of the spaces between them."""
        return sum(map(len, self.ids)) + sum(word.space_after for word in self.words[:-1])

    def cut(self, start: int, stop: int | None = None) -> SpokenSentence:
        """The part from one word up to another, or to the end."""
        return self._replace(words=self.words[start:stop], ids=self.ids[start:stop])


class SpokenSentences(Iterator[SpokenSentence]):
    """The sentences of a text after G2P; the next one's length can be asked for before it is read.

    Parameters
    ----------
    spoken : iterable of SpokenSentence
    """

    def __init__(self, spoken: Iterable[SpokenSentence]) -> None:
        self._spoken = iter(spoken)
        self._next: SpokenSentence | None = None

    def __next__(self) -> SpokenSentence:
        found, self._next = self._next, None
        return next(self._spoken) if found is None else found

    def longer_than(self, columns: int) -> bool:
        """Whether the next sentence is wider than `columns`. If it is, the answer does not wait for the
        sentence's end."""
        if self._next is None:
            self._next = next(self._spoken, None)
        return self._next is not None and self._next.columns > columns

    def opening(self) -> SpokenSentence | None:
        """If the next sentence is wider than `OPENING_COLUMNS`: the words within its first `OPENING_COLUMNS`;
        else None."""
        return None

    def enter(self, offset: int) -> None:
        """Skip the part of the next sentence before `offset` in the original, which has been spoken."""
        raise NotImplementedError


def pack(spoken: SpokenSentences, *, space_id: int, language: str, first_id: int = 0) -> Iterator[Segment]:
    """Segments of at most `MAX_TOKENS`, lazily: one sentence each, with three exceptions:

    - a sentence under `SHORT_TOKENS` is joined to its neighbour in the paragraph, up to `JOINED_TOKENS`;
    - a sentence over `LONG_TOKENS` is cut into balanced parts, at clauses rather than at spaces;
    - a first sentence over `FIRST_TOKENS` is cut near that or before it, where a speaker would pause.

    Every word of `spoken` is in exactly one segment, in order. For a resumed stream, `spoken` begins with a
    later sentence, and `first_id` is the id of the segment that begins with it: the segments are then the
    same as those from the beginning.
    """
    for segment_id, part in enumerate(_parts(spoken, first=first_id == 0), first_id):
        yield _segment(segment_id, part, space_id, language)


def _parts(spoken: SpokenSentences, *, first: bool) -> Iterator[SpokenSentence]:
    opening = spoken.opening() if first else None
    if opening is not None:
        fitting = _fitting(opening)
        gone = _clear_cut(fitting.words, _first_cut(fitting))
        if gone:
            spoken.enter(max(word.end for word in fitting.words[:gone]))
            yield from _balanced(fitting.cut(0, gone))
        first = False
    for joined in _joined(spoken):
        sentence = _fitting(joined)
        gone = _first_cut(sentence) if first else 0
        if gone:
            yield from _balanced(sentence.cut(0, gone))
        yield from _balanced(sentence.cut(gone))
        first = False


def _clear_cut(words: Sequence[Word], cut: int) -> int:
    """The first cut, from `cut` on, at which no word before it and no word after it stand for the same part
    of the text; 0 if there is none."""
    if not cut:
        return 0
    end = max(word.end for word in words[:cut])
    for at in range(cut, len(words)):
        if words[at].start >= end:
            return at
        end = max(end, words[at].end)
    return 0


def _joined(spoken: SpokenSentences) -> Iterator[SpokenSentence]:
    for sentence in spoken:
        held = sentence
        while (limit := _may_join(held)) and not spoken.longer_than(limit):
            following = next(spoken, None)
            if following is None:
                break
            if not _joins(held, following, limit):
                yield held
                held = following
                continue
            words = (*held.words[:-1], replace(held.words[-1], space_after=True), *following.words)
            ids, columns = held.ids + following.ids, held.columns + 1 + following.columns
            held = SpokenSentence(words, ids, following.ends_paragraph, held.number, columns)
        yield held


def _may_join(held: SpokenSentence) -> int:
    """The greatest width of a next sentence that may be joined to this one; 0 if no sentence may."""
    if held.ends_paragraph or held.token_count >= JOINED_TOKENS:
        return 0
    return JOINED_COLUMNS if held.token_count < SHORT_TOKENS else SHORT_COLUMNS


def _joins(held: SpokenSentence, following: SpokenSentence, columns: int) -> bool:
    short = held.token_count < SHORT_TOKENS or following.token_count < SHORT_TOKENS
    fits = held.token_count + 1 + following.token_count <= JOINED_TOKENS
    return short and fits and following.columns <= columns


def _fitting(sentence: SpokenSentence) -> SpokenSentence:
    """The sentence, in which each word over `LONG_TOKENS` is cut into several with the same offsets."""
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
    """A border between words: how well a pause fits there, and how many words and token ids come before
    it."""

    strength: int
    words: int
    tokens: int


def _cuts(sentence: SpokenSentence, least: int, *, at_stops: bool) -> Iterator[_Cut]:
    """The borders between the sentence's words, in order, at which a pause fits at least as well as `least`.

    With `at_stops`, a mark at which a sentence may end is as good as one that divides clauses. A border
    without a mark may divide a part of the text, such as `44h`, only if `SHORT_TOKENS` of it are on either
    side.
    """
    tokens = 0
    for i, (strength, least_side) in enumerate(zip(borders(sentence.words), _sides(sentence), strict=True)):
        word = sentence.words[i]
        tokens += len(sentence.ids[i]) + word.space_after
        if at_stops and ends_with_pause(word):
            strength = MARK
        if strength >= least and (strength == MARK or least_side >= SHORT_TOKENS):
            yield _Cut(strength, i + 1, tokens)


def _sides(sentence: SpokenSentence) -> list[int]:
    """For each border between two words of the same part of the text, how many of the part's token ids are on
    its shorter side; `MAX_TOKENS` for the other borders."""
    words, found, part = sentence.words, list[int](), [0]
    for i, ids in enumerate(sentence.ids):
        part.append(part[-1] + len(ids))
        following = words[i + 1] if i + 1 < len(words) else None
        if following is None or following.start >= words[i].end or following.end <= words[i].start:
            found += [min(ahead, part[-1] - ahead) for ahead in part[1:-1]] + [MAX_TOKENS]
            part = [0]
    return found[:-1]


def _first_cut(sentence: SpokenSentence) -> int:
    """The number of words in the first segment; 0 if the sentence is short, or has no border to cut it at.

    A sentence of up to `FIRST_WHOLE_TOKENS` is cut at a mark only, one of up to `FIRST_LONG_TOKENS` between
    two phrases as well, and a longer one at a weak border, too. If the first segment would be longer than
    `FIRST_WHOLE_TOKENS`, it is cut earlier where possible, even to less than `SHORT_TOKENS`, except in the
    languages of `LEAST_TOKENS`.
    """
    total = sentence.token_count
    if total <= FIRST_TOKENS:
        return 0
    least = MARK if total <= FIRST_WHOLE_TOKENS else PHRASE if total <= FIRST_LONG_TOKENS else WEAK
    cut = _ample_cut(sentence, least)
    in_front = sentence.cut(0, cut).token_count if cut else total
    if in_front <= FIRST_WHOLE_TOKENS or _least_tokens(sentence) > SHORT_TOKENS:
        return cut
    return _early_cut(sentence, least) or cut


def _least_tokens(sentence: SpokenSentence) -> int:
    return LEAST_TOKENS.get(sentence.words[0].language, SHORT_TOKENS)


def _ample_cut(sentence: SpokenSentence, least: int) -> int:
    """The number of words before the best border with `SHORT_TOKENS` (or `LEAST_TOKENS`) or more on either
    side; 0 without one.

    The best border is the last of the strongest borders within `FIRST_TOKENS`, or else the first border after
    that length. A mark or the end of a sentence within `FIRST_WHOLE_TOKENS` is better than a weaker border.
    """
    shortest = _least_tokens(sentence)
    latest = sentence.token_count - shortest
    found = _cuts(sentence, least, at_stops=True)
    cuts = [cut for cut in found if shortest <= cut.tokens <= latest]
    soon = [cut for cut in cuts if cut.tokens <= FIRST_TOKENS]
    best = max(soon) if soon else cuts[0] if cuts else None
    if best is None or best.strength == MARK:
        return best.words if best else 0
    later = (cut.words for cut in cuts if cut.strength == MARK and cut.tokens <= FIRST_WHOLE_TOKENS)
    return next(later, best.words)


def _early_cut(sentence: SpokenSentence, least: int) -> int:
    """The number of words before the last of the strongest borders that have `FIRST_LEAST_TOKENS` or more
    before them."""
    latest = min(FIRST_WHOLE_TOKENS, sentence.token_count - SHORT_TOKENS)
    found = _cuts(sentence, least, at_stops=False)
    cuts = [cut for cut in found if FIRST_LEAST_TOKENS <= cut.tokens <= latest]
    return max(cuts).words if cuts else 0


def _balanced(sentence: SpokenSentence) -> Iterator[SpokenSentence]:
    """Halve the sentence until no part is over `LONG_TOKENS`: near its middle, rather at a clause than at a
    space, and rather at a space than between words that no space divides."""
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
