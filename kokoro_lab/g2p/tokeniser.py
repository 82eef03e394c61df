"""spaCy's tokeniser for English, from the rules in its model: the same tokens, without spaCy.

Prefixes and suffixes are split off a word between spaces until none matches. The rest stays whole if it is an
address, else it is cut at infixes. A word in the list of exceptions (`don't`) is cut as that list says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

ORTH, NORM = 65, 67
"""The keys by which spaCy's list of exceptions gives the text of a token, and the word that the tagger gets
instead of it."""


class Token(NamedTuple):
    """A token. `norm` is the form that the tagger sees if an exception sets one; `space` says whether a space
    follows."""

    text: str
    norm: str | None = None
    space: bool = False


class Tokeniser:
    """Tokens of a text. Thread-safe.

    Parameters
    ----------
    rules : mapping
        The model's file `tokenizer`, unpacked: patterns under `prefix_search`, `suffix_search`,
        `infix_finditer` and `url_match`; under `exceptions`, the tokens of each word.
    """

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self._prefix = re.compile(rules["prefix_search"]).search
        self._suffix = re.compile(rules["suffix_search"]).search
        self._infixes = re.compile(rules["infix_finditer"]).finditer
        self._url = re.compile(rules["url_match"]).match
        self._exceptions = {
            word: [Token(part[ORTH], part.get(NORM)) for part in made_of]
            for word, made_of in rules["exceptions"].items()
        }
        self._torn = self._exceptions_that_are_torn()

    def __call__(self, text: str) -> list[Token]:
        """Tokens in order. Joined, with a space after each token that has one, they are `text` again."""
        return self._mended(list(self._tokens(text)))

    def _tokens(self, text: str) -> Iterator[Token]:
        spans = ["".join(span) for _, span in groupby(text, str.isspace)]
        for at, span in enumerate(spans):
            if span.isspace():
                # One space belongs to the token before it
                span = span.removeprefix(" ") if at else span
                if not span:
                    continue
            tokens = self._exceptions.get(span) or self._of_word(span, self._exceptions)
            yield from tokens[:-1]
            yield tokens[-1]._replace(space=spans[at + 1 : at + 2] != [] and spans[at + 1].startswith(" "))

    def _of_word(self, word: str, exceptions: Mapping[str, list[Token]]) -> list[Token]:
        prefixes: list[Token] = []
        suffixes: list[Token] = []
        while word and word not in exceptions:
            start = found.end() - found.start() if (found := self._prefix(word)) else 0
            stop = found.end() - found.start() if (found := self._suffix(word[start:])) else 0
            # What is an exception without one of the two keeps the other
            if start and word[start:] in exceptions:
                stop = 0
            elif stop and word[:-stop] in exceptions:
                start = 0
            if not start and not stop:
                break
            if start:
                prefixes.append(Token(word[:start]))
            if stop:
                suffixes.append(Token(word[-stop:]))
            word = word[start : len(word) - stop]
        return [*prefixes, *self._of_rest(word, exceptions), *reversed(suffixes)]

    def _of_rest(self, word: str, exceptions: Mapping[str, list[Token]]) -> Sequence[Token]:
        """The tokens of a word without its prefixes and suffixes."""
        if not word:
            return ()
        if word in exceptions:
            return exceptions[word]
        if self._url(word):
            return [Token(word)]
        tokens: list[Token] = []
        at = 0
        for infix in self._infixes(word):
            if infix.start() == 0:
                continue
            tokens += [Token(part) for part in (word[at : infix.start()], infix.group()) if part]
            at = infix.end()
        return [*tokens, Token(word[at:])] if word[at:] else tokens

    def _exceptions_that_are_torn(self) -> dict[str, list[list[str]]]:
        """First token → the token lists of exceptions that begin with it, for those exceptions that the
        patterns would cut otherwise."""
        torn: dict[str, list[list[str]]] = {}
        for word in self._exceptions:
            if " " in word or self._prefix(word) or self._suffix(word) or next(self._infixes(word), None):
                texts = [token.text for span in word.split(" ") for token in self._of_word(span, {})]
                if texts:
                    torn.setdefault(texts[0], []).append(texts)
        return torn

    def _mended(self, tokens: list[Token]) -> list[Token]:
        """`tokens`, in which each exception that was cut is put together again. If several exceptions
        overlap, the longest one is taken."""
        found = [
            (len(texts), -at)
            for at, token in enumerate(tokens)
            for texts in self._torn.get(token.text, ())
            if [each.text for each in tokens[at : at + len(texts)]] == texts
        ]
        if not found:
            return tokens
        taken: set[int] = set()
        chosen: dict[int, int] = {}
        for length, start in sorted(found, reverse=True):
            if -start not in taken and length - start - 1 not in taken:
                chosen[-start] = length
            taken.update(range(-start, length - start))
        mended: list[Token] = []
        at = 0
        while at < len(tokens):
            run = tokens[at : at + chosen.get(at, 1)]
            word = "".join(token.text + " " * token.space for token in run[:-1]) + run[-1].text
            exception = self._exceptions.get(word) if at in chosen else None
            mended += [*exception[:-1], exception[-1]._replace(space=run[-1].space)] if exception else run
            at += len(run)
        return mended
