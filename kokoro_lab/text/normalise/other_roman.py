"""Roman numerals of centuries, rulers, chapters and events in the languages of `others.tsv`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kokoro_lab.text.normalise.other_numbers import OtherNumbers
from kokoro_lab.text.normalise.roman import valued
from kokoro_lab.text.normalise.rules import Rule
from kokoro_lab.text.tables import any_of, entries


class OtherRoman(OtherNumbers):
    """The rules for Roman numerals, by the words beside them."""

    def _roman_rules(self) -> Iterator[Rule]:
        words = self._words
        endings, before, behind, behind_feminine, ranked = (
            entries(words[each])
            for each in (
                "endings of a Roman ordinal",
                "before a Roman number",
                "behind a Roman ordinal",
                "behind a feminine Roman ordinal",
                "before a Roman ordinal",
            )
        )
        if endings:
            numeral = rf"(?P<roman>(?=[IVX]|[LCDM]{{2}})[IVXLCDM]+)(?P<ending>{any_of(endings)})"
            yield Rule("Roman ordinal", rf"(?<!\p{{L}}){numeral}s?(?!\p{{L}})", valued(self._roman_ordinal))
            yield Rule(
                "century",
                r"(?<=\b(?:[IVX]+|\d+)e\ )s\.(?!\p{L})",
                lambda match: "siècle" if match.string[match.end() :].strip() else "siècle.",
            )
        if behind:
            # also the first of two: "il XV e il XVII secolo", "XV-XVI secolo"
            second = r"(?:(?:\ (?:ed?|a|al|o)\ (?:il\ |la\ |o\ |a\ )?|[-–])[IVXLC]+)?\ "
            nouns = rf"(?:{any_of(behind)}|(?P<feminine>{any_of(behind_feminine)}))(?!\p{{L}})"
            numeral = rf"(?<![\p{{L}}\p{{N}}.])(?P<roman>[IVXLC]+)(?={second}{nouns})"
            yield Rule("Roman ordinal", numeral, valued(self._roman_ordinal))
        if ranked:
            yield Rule(
                "century",
                r"(?<=\b[IVX]+\ )sec\.",
                lambda match: "secolo" if match.string[match.end() :] else "secolo.",
            )
            nouns = rf"(?<!\p{{L}}){any_of(ranked)}\ (?:[IVXLC]+(?:\ e\ |[-–]))?"
            numeral = rf"(?<={nouns})(?P<roman>[IVXLC]+)(?![\p{{L}}\p{{N}}'])"
            yield Rule("Roman ordinal", numeral, valued(lambda match, value: self.ordinal(value)))
        if before:
            nouns = rf"(?<!\p{{L}}){any_of(before)}\ (?:[IVXLC]+\ (?:et|e)\ )?"
            numeral = rf"(?<={nouns})(?P<roman>[IVX]+|[IVXLC]{{2,}})(?![\p{{L}}\p{{N}}'-])"
            yield Rule("Roman number", numeral, valued(lambda match, value: self._say(value)))
            ruler = r"(?<=\p{Lu}\p{Ll}+\ )(?P<roman>[IVX]{2,}|V|I(?=\ ?[,.;:!?)]|$))(?![\p{L}\p{N}'-])"
            yield Rule("number of a ruler", ruler, valued(self._ruler))

    def _roman_ordinal(self, match: Any, value: int) -> str:
        groups = match.groupdict()
        said = self.ordinal(value)
        return self._feminine(said) if groups.get("feminine") or groups.get("ending") == "re" else said

    def _ruler(self, match: Any, value: int) -> str:
        if value > int(self._words["highest ordinal of a ruler"]):
            return self._say(value)
        said = self.ordinal(value)
        return self._feminine(said) if match.string[match.start() - 2] == "a" else said
