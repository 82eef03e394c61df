"""Sums, sizes, scores and multiples in the languages of `others.tsv`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from kokoro_lab.text.normalise.other_numbers import OtherNumbers
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import CountedUnit, any_of, entries

_SUMS = "=÷<>"
"""Signs that are said between two numbers."""


class OtherSizes(OtherNumbers):
    """The rules for numbers with a sign between them: `5 x 3 = 15`, `1920x1080`, `venceu por 3x1`."""

    def _size_rules(self) -> Iterator[Rule]:
        words = self._words
        mark, unit, word = regex.escape(words["decimal mark"]), any_of(self._units), r"[\p{L}\p{M}\p{N}²³]"
        yield digit_rule(
            "score",
            r"(?<=\p{Lu}\p{L}+\ )(?P<a>\d{1,2})\ ?x\ ?(?P<b>\d{1,2})(?=\ \p{Lu}\p{Ll})",
            lambda match: f"{self._say(int(match['a']))} {words['to']} {self._say(int(match['b']))}",
            wakes="x",
        )
        yield Rule(
            "so many times",
            r"(?<=(?<![\w.,]|=\ )\d{1,3}[.,]\d)x(?![\w.]|\s?[-+=\d])",
            lambda match: words["times"],
            wakes="x",
        )
        yield digit_rule(
            "so many times",
            r"(?<![\w.,]|=\ )(?P<whole>\d{1,3})x(?![\w.]|\s?[-+=\d])",
            lambda match: self._counted(int(match["whole"]), CountedUnit(words["time"], words["times"], "f")),
            wakes="x",
        )
        yield digit_rule(
            "size",
            rf"(?<![\w.,])(?P<sides>\d+(?:{mark}\d+)?(?:\s?[x×]\s?\d+(?:{mark}\d+)?){{1,2}})"
            rf"\s?(?P<unit>{unit})(?!{word})",
            self._size,
            wakes="x×",
        )
        yield digit_rule(
            "sign of a size",
            rf"(?<=\d\ ?{unit}\ )[x×](?=\ \d)",
            lambda match: words["times, of a size"],
            wakes="x×",
        )
        yield digit_rule(
            "product or size without a unit",
            rf"(?<![\w.,])(?!0x)(?P<sides>\d+(?:{mark}\d+)?(?:\s?[x×]\s?\d+(?:{mark}\d+)?){{1,2}})"
            r"(?!\w|[.,]\d)",
            self._product,
            wakes="x×",
        )
        yield Rule(
            "sign of a sum",
            rf"(?<=\d\ ?(?:{unit}\ )?)[{_SUMS}](?=\ ?[-+]?\d)|(?<=\w\ )=(?=\ (?:R?[$€£]\ ?)?\d)",
            lambda match: self._signs.get(match.group()),
            wakes=_SUMS,
        )
        before = self._pairs("sign before a number")
        yield Rule(
            "sign before a number",
            rf"(?<![\w<>~=)-]|[\w)]\ ){any_of(before)}\ ?(?=\d)|(?<=\p{{L}}\ )[~≈<>≤≥](?=\d)",
            lambda match: before.get(match.group().strip()),
            wakes="~≈<>≤≥",
        )
        yield digit_rule(
            "two degrees",
            r"(?<![\w.,])(?P<a>-?\d+)\ ?[°º]\ ?/\ ?(?P<b>-?\d+)\ ?[°º](?!\w)",
            lambda match: (
                f"{self.cardinal(int(match['a']))}, {self.cardinal(int(match['b']))} {words['degrees']}"
            ),
            wakes="°º",
        )
        yield Rule(
            "plus behind a number",
            r"(?<=\d)\+(?![\w+])(?!\ ?\d)",
            lambda match: f" {self._signs['+']}",
            wakes="+",
        )

    def _size(self, match: Any) -> str:
        by = f" {self._words['times, of a size']} "
        sides = map(self._decimal, regex.split(r"\s?[x×]\s?", match["sides"]))
        return f"{by.join(sides)} {self._units[match['unit']].many}"

    def _product(self, match: Any) -> str:
        """`5 x 3 = 15` is a product, `2x1` in the report of a match a score, and `1920x1080` a size."""
        sides, near = match["sides"], self._words["near a score"]
        summed = " " in sides or match.string[match.end() : match.end() + 2].strip()[:1] == "="
        word = "times, of a product" if summed else ""
        if near and regex.fullmatch(r"\d\ ?x\ ?\d", sides):
            around = regex.split("[.;!?]", match.string[: match.start()])[-1]
            around += regex.split("[.;!?]", match.string[match.end() :])[0]
            word = "to" if regex.search(rf"(?<!\p{{L}})(?i:{any_of(entries(near))})", around) else word
        by = f" {self._words[word or 'times, of a size']} "
        return by.join(map(self._decimal, regex.split(r"\s?[x×]\s?", sides)))
