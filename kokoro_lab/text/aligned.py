"""A text that is rewritten step by step, and knows where each of its characters came from."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any


@dataclass(frozen=True, slots=True)
class AlignedText:
    """Rewritten text with, for every character, its span in the original.

    `starts[i]:ends[i]` is the span of the original that character `i` stands for. When a part is rewritten,
    the other characters keep their spans. So a word of the last step can be shown in the text that the user
    typed.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, original: str, offset: int = 0) -> AlignedText:
        """The original itself, or a part that begins at `offset`: each character stands for itself."""
        offsets = tuple(range(offset, offset + len(original) + 1))
        return cls(original, offsets[:-1], offsets[1:])

    @classmethod
    def standing_for(cls, words: str, start: int, end: int) -> AlignedText:
        """`words`, each character of which stands for the span `start:end` of the original."""
        return cls(words, (start,) * len(words), (end,) * len(words))

    @classmethod
    def joined(cls, parts: Iterable[AlignedText]) -> AlignedText:
        """Join texts that were made from parts of one original."""
        found = list(parts)
        return cls(
            "".join(part.text for part in found),
            tuple(chain.from_iterable(part.starts for part in found)),
            tuple(chain.from_iterable(part.ends for part in found)),
        )

    def __len__(self) -> int:
        return len(self.text)

    def span(self, i: int, j: int) -> tuple[int, int]:
        """The span of the original for which `text[i:j]` stands; for an empty text, it is empty, too."""
        if i >= j:
            at = self.starts[i] if i < len(self.text) else (self.ends[-1] if self.ends else 0)
            return at, at
        return min(self.starts[i:j]), max(self.ends[i:j])

    def range_of(self, start: int, end: int) -> tuple[int, int]:
        """The range of this text that stands for `start:end` of the original: the inverse of `span`."""
        return bisect_left(self.starts, start), bisect_left(self.starts, end)

    def cut(self, i: int, j: int) -> AlignedText:
        """The part `text[i:j]`; its offsets are still those in the original."""
        return AlignedText(self.text[i:j], self.starts[i:j], self.ends[i:j])

    def strip(self) -> AlignedText:
        """This text without white space at either end."""
        lead = len(self.text) - len(self.text.lstrip())
        return self.cut(lead, max(lead, len(self.text.rstrip())))

    def sub(self, pattern: Any, words: Callable[[Any], str]) -> AlignedText:
        """Replace each match of a compiled pattern by what `words` returns for it, as `re.sub` does.

        A match that `words` leaves as it is keeps the offsets of its characters.
        """
        found = ((*match.span(), words(match)) for match in pattern.finditer(self.text))
        return self.rewrite((i, j, new) for i, j, new in found if new != self.text[i:j])

    def rewrite(self, edits: Iterable[tuple[int, int, str]]) -> AlignedText:
        """Replace ranges `(i, j, replacement)`, given in order and not overlapping.

        Every character of a replacement stands for the whole range that it replaces.
        """
        text: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        for i, j, replacement in edits:
            if i < at:
                raise ValueError(f"edits overlap or are out of order at {i}")
            text.append(self.text[at:i])
            starts.extend(self.starts[at:i])
            ends.extend(self.ends[at:i])
            start, end = self.span(i, j)
            text.append(replacement)
            starts.extend([start] * len(replacement))
            ends.extend([end] * len(replacement))
            at = j
        if at == 0:
            return self
        text.append(self.text[at:])
        starts.extend(self.starts[at:])
        ends.extend(self.ends[at:])
        return AlignedText("".join(text), tuple(starts), tuple(ends))
