"""The entries of one of misaki's dictionaries, each parsed when it is asked for.

Parsing a whole dictionary takes a quarter of a second and 40 MB. Its file has one entry on each line, sorted
by word, so an entry is found by binary search.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

import numpy as np

Entry = str | dict[str, str | None]
"""The phonemes of a word; or, if it is said in several ways, Penn tag or word class → its phonemes. `DEFAULT`
is one of the keys."""

REMEMBERED = 16384
_BEFORE_NAME = '\n  "'
_SEVERAL = re.compile(rb'\n  "(?P<word>[^"]+)": (?P<entry>\{[^}]*\})')


class Entries:
    """Finds the entry of a word. An entry in lower case is also found for the capitalised word, and the other
    way round.

    Parameters
    ----------
    file : bytes
        A JSON object with one member on each line, indented by two spaces, sorted by their names.
    """

    def __init__(self, file: bytes) -> None:
        self._file = file
        codes = np.frombuffer(file, np.uint8)
        begins = [codes[k : len(codes) - 3 + k] == ord(c) for k, c in enumerate(_BEFORE_NAME)]
        self._starts = np.flatnonzero(np.logical_and.reduce(begins)) + len(_BEFORE_NAME)
        self._ends = np.append(self._starts[1:] - len(_BEFORE_NAME), file.rindex(b"}"))
        self._taught: dict[str, Entry] = {}
        self._found = lru_cache(REMEMBERED)(self._in_both_cases)

    def __contains__(self, word: str) -> bool:
        return self.get(word) is not None

    def __getitem__(self, word: str) -> Entry:
        entry = self.get(word)
        if entry is None:
            raise KeyError(word)
        return entry

    def __setitem__(self, word: str, entry: Entry) -> None:
        self._taught[word] = entry

    def get(self, word: str) -> Entry | None:
        """The entry of a word; None if there is none."""
        return self._taught.get(word) or self._found(word)

    def of_several_readings(self) -> Iterator[tuple[str, Entry]]:
        """Words in lower case that are said in more than one way, with their entries."""
        written = {match["word"].decode(): match["entry"] for match in _SEVERAL.finditer(self._file)}
        for word in dict.fromkeys([*self._taught, *map(str.lower, written)]):
            if word != word.lower():
                continue
            if word in written and word not in self._taught:
                yield word, json.loads(written[word])
            elif isinstance(entry := self.get(word), dict):
                yield word, entry

    def _in_both_cases(self, word: str) -> Entry | None:
        found = self._in_file(word)
        lower, capitalised = word.lower(), word.capitalize()
        if found is None and len(word) > 1 and lower != capitalised and word in (lower, capitalised):
            found = self._in_file(lower if word == capitalised else capitalised)
        return found

    def _in_file(self, word: str) -> Entry | None:
        wanted = word.encode()
        number = bisect_left(range(len(self._starts)), wanted, key=self._name)
        found = number < len(self._starts) and self._name(number) == wanted
        return self._parsed(number) if found else None

    def _name(self, number: int) -> bytes:
        start = int(self._starts[number])
        return self._file[start : self._file.index(b'"', start)]

    def _parsed(self, number: int) -> Entry:
        member = self._file[self._starts[number] - 1 : self._ends[number]].rstrip(b",")
        (entry,) = json.loads(b"{" + member + b"}").values()
        return cast(Entry, entry)
