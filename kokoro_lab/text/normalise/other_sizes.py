"""Sums, sizes, scores and multiples in the languages of `others.tsv`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from kokoro_lab.text.normalise.other_numbers import OtherNumbers
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import CountedUnit, any_of, entries

_SUMS = "=÷<>≥≤≠≈"
"""Signs that are said between two numbers."""
_OPERAND = r"(?:R?[$€£]\ ?)?(?:[-+]?\d|√|\p{L}(?!\p{L}))"
_OF_A_SUM = r"(?:[^.,;?\n]|,(?=\d))"
_EQUATION = rf"(?={_OF_A_SUM}{{1,40}}[=<>≥≤])|(?<=[=<>≥≤]{_OF_A_SUM}{{1,40}})"
"""A pattern for a place with a sign of an equation within 40 characters, in the same part of a sentence."""


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
            rf"(?<=\d\ ?(?:{unit}\ )?)[{_SUMS}](?=\ ?[-+]?\d)|(?<=[\w²³!)]\ )=(?=\ {_OPERAND})"
            rf"|(?<=(?<!\p{{L}})\p{{L}}[²³]?\ )[≥≤≠≈](?=\ {_OPERAND})",
            lambda match: self._signs.get(match.group()),
            wakes=_SUMS,
        )
        yield Rule(
            "number with a sign of its own",
            r"(?<![\p{L}\d])[π∞](?!\p{L})",
            lambda match: self._signs[match.group()],
            wakes="π∞",
        )
        before_number, _, behind_number = words["root of a number"].partition("{}")
        operand = r"(?=[\d(\p{L}])" if before_number else rf"(?P<of>\d+(?:{mark}\d+)?|\p{{L}})(?!\w)"
        yield Rule(
            "root",
            r"√\ ?" + operand,
            lambda match: before_number.strip() or f"{self._root(match['of'])}{behind_number}",
            wakes="√",
        )
        yield Rule(
            "minus in a sum",
            rf"(?<=(?:(?<!\p{{L}})\p{{L}}|[\d)²³])\ )-(?=\ (?:[\d(√]|\p{{L}}(?!\p{{L}})))(?:{_EQUATION})",
            lambda match: words["minus"],
            wakes="-",
            also="=<>≥≤",
        )
        yield digit_rule(
            "factorial", r"(?<=\d)!(?=\ ?[=+×÷/*])", lambda match: f" {words['factorial']}", wakes="!"
        )
        if words["parts of a whole"]:
            beside = r"\ ?[-+×÷=]\ ?"
            yield digit_rule(
                "fraction in a sum",
                r"(?<![\w/.,])(?P<top>[1-9]\d?)/(?P<bottom>[2-9]|[1-9]\d)(?![\w/]|[.,]\d)"
                rf"(?:(?={beside}[\d(])|(?<=[\d)]{beside}\d\d?/\d\d?))",
                self._summand,
                wakes="/",
                also="-+×÷=",
            )
        if words["between equal spans"]:
            yield digit_rule(
                "time after time",  # `de 8/8 h`
                r"(?<![\w/.,])(?!24/)(?P<whole>\d{1,2})/(?P=whole)\ ?(?P<unit>h|hs|horas|min|dias)(?![\w/])",
                self._every,
                wakes="/",
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

    def _root(self, of: str) -> str:
        return self._decimal(of) if of[0].isdecimal() else of

    def _summand(self, match: Any) -> str:
        """The words for a fraction: "tre quarti", "um doze avos"."""
        top, bottom, ending = int(match["top"]), int(match["bottom"]), self._words["ending of several parts"]
        named = self._pairs("parts of a whole").get(str(bottom))
        if self._words["locale"] == "pt_BR" and bottom > 10:
            named = f"{self._say(bottom)} avos"
        noun = named or self.ordinal(bottom)
        if top > 1 and not noun.endswith("s"):
            noun = f"{noun.removesuffix('o')}i" if ending == "i" else f"{noun}{ending}"
        return f"{'un' if (top, ending) == (1, 'i') else self._say(top)} {noun}"

    def _every(self, match: Any) -> str:
        """`de 8/8 h`, as Brazilian doctors write: "de oito em oito horas"."""
        unit = self._units.get(match["unit"]) or self._units["h" if match["unit"] == "horas" else "d"]
        said = self._counted(int(match["whole"]), unit)
        number = said.removesuffix(unit.many).removesuffix(unit.one)
        return f"{number}{self._words['between equal spans']} {said}"

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
