"""Short forms with several meanings in the languages of `others.tsv`: the words beside them decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import regex

from kokoro_lab.text.boundaries import is_label
from kokoro_lab.text.normalise.other_numbers import OtherNumbers, last_stop, spaced
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import any_of, entries, names

_HOUSE = r"\d{1,4}(?:\ ?(?:bis|ter))?"
_NAME_OF_STREET = r"\ (?:(?:de\ la|d[ue]|des)\ |(?:de\ l|d)['’])?\p{Lu}"
_ANY_NAME = r"(?:\ (?:d[ue]|des)\ |\ d['’]|(?=\ \p{Lu}))"
HOUSES = r"\d{1,3}(?:/\d{1,3}){1,2}(?![\w/]|[.,]\d|\ (?:km|m|ore?)\b|(?<=,\ [\d/]+)\ d[aeiou]\p{Ll}*\ )"
"""A pattern for house numbers with strokes between them; in `in via Roma, 3/4 dei negozi`, there are none."""
_NAME_BEHIND_STREET = (
    r"(?:(?:d\p{Ll}{1,4}|\p{Lu}[\p{L}.'’]*)\ |dell['’]){0,4}\p{Lu}[\p{L}.'’]*,?\ (?:n[.°º]?\ |numero\ )?"
)
_ABOUT = "(?:oltre|circa|quasi|almeno|già|ben|altri|più\\ di)"
_WORD_BEFORE = regex.compile(r"(\p{L}+)\ $")
_OPENS_A_QUOTATION = regex.compile(r"(?<!\w)['‘]\S")
_BEFORE_CHARS = 24
"""Number of characters before a number that may say what it numbers."""
_AROUND_CHARS = 150
"""Number of characters on either side of `CV` in which its sentence is searched for what it speaks of."""


class OtherContext(OtherNumbers):
    """The rules for house numbers, saints, exercises and applications for a job."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        tables = names(__package__, "other_names.tsv")
        self._titles = {initial: tables.get(f"{language} {initial}", {}) for initial in ("S.", "D.")}
        parts = entries(self._words["before a number and a letter"])
        self._part = regex.compile(rf"(?<!\p{{L}})(?i:{any_of(parts)})\s?$") if parts else None

    def _context_rules(self) -> Iterator[Rule]:
        words = self._words
        streets = entries(words["street behind house numbers"])
        if streets:
            named = entries(words["street behind house numbers, with a name"])
            yield digit_rule(
                "house numbers",  # said one after the other
                rf"(?<![\w/.,-])(?<!\b[Ll]e\ |\d/\d\d?\ au\ ){_HOUSE}(?:/{_HOUSE}){{1,3}}"
                rf"(?=,?\ (?:{any_of(streets)}{_ANY_NAME}|{any_of(named)}{_NAME_OF_STREET}))",
                self._houses,
                wakes="/",
            )
        streets = entries(words["street before house numbers"])
        if streets:
            yield digit_rule(
                "house numbers",
                rf"(?<![\w/.,-])(?=\d+/)"
                rf"(?<=\b(?:civic[oi]\ |(?i:{any_of(streets)})\ {_NAME_BEHIND_STREET})){HOUSES}",
                self._houses,
                wakes="/",
            )
        for initial, titles in self._titles.items():
            if titles:
                yield Rule(
                    "saint or title",
                    rf"(?<![\p{{L}}\p{{M}}\p{{N}}-])(?<!(?<!\p{{L}})\p{{Lu}}\.\ ?){regex.escape(initial)}\ ?"
                    rf"(?P<name>{any_of(titles)})(?!\p{{L}})",
                    partial(self._entitled, titles),
                    wakes=".",
                )
        if words["exercise"]:
            yield digit_rule(
                "exercises",
                r"(?<![\p{L}\p{N}.]|[(,;:–-]\ ?|\b(?i:ad|per|p\.)\ )(?P<short>[Ee]s)\.\ ?"
                r"(?=\d{1,3}(?P<more>(?:,\ \d{1,3})*\ ?[e–-]\ ?\d{1,3}(?!\d))?"
                r"(?:\ ?[,;:.!?)]|\ (?:a|al|alla|di|del|della|da|pag|pagina|p)\b|$))",
                self._exercises,
            )
        if words["near an application"]:
            yield Rule(
                "applications",
                r"(?<=(?<!\b(?:[Dd]ai?|[Cc]on|[Hh]a|(?<!più\ )di)\ )(?<![\w.,])\d{1,4}\ )CV(?!\w)",
                self._applications,
                wakes="V",
            )
        yield from self._beside_nouns()

    def _beside_nouns(self) -> Iterator[Rule]:
        """The rules for signs with several meanings, of which the words beside them show one: `temperatura
        max.`, `vento da NE`, `ritardo di 25'`."""
        words = self._words
        if words["greatest and least"]:
            short = any_of(self._pairs("greatest and least"))
            nouns = rf"(?<!\p{{L}})(?i:{any_of(entries(words['that have a greatest']))})"
            yield Rule(
                "greatest or least",
                rf"(?P<short>{short})\.?(?!\p{{L}})"
                rf"(?<={nouns}(?P<many>s?)\ "
                rf"(?:{short}\.?[^!?\n]{{1,40}}(?:[,;(/]\ ?|\b(?:ed?|l?a)\ ))?{short}\.?)",
                self._greatest,
            )
            yield digit_rule(
                "greatest or least heat",
                rf"(?<=(?:^|[:;,(–-]\ ?|\be\ ))(?P<short>(?i:{short}))\.?:?(?=\ -?\d+(?:[.,]\d+)?\ ?[°º])",
                self._heat,
                wakes="°º",
            )
        if words["wind"]:
            sides = self._pairs("degrees of the compass")
            yield Rule(
                "degree of the compass",
                rf"(?P<side>{any_of(sides)})(?:\.(?!\ \p{{Lu}}))?(?![\p{{L}}\p{{N}}.'’-])"
                rf"(?<=\b(?i:{any_of(entries(words['wind']))})\b[^.,;!?]{{0,40}}"
                rf"\b(?:{any_of(entries(words['before a compass']))})(?:\ |(?<='))\p{{Lu}}{{1,2}}\.?)",
                lambda match: sides[match["side"]] + last_stop(match),
                wakes="".join({side[0] for side in sides}),
            )
        if words["locale"] != "hi":
            yield digit_rule(
                "minutes by their sign",
                r"(?<![\w.,'′])(?<!\b(?:al|dal|il|l[ae]|en|minuto|minute|[da]u|d?o|no)\ )"
                r"(?P<whole>\d{1,3})['′](?!['′\w]|\ ?[\d+])",
                self._minutes,
                wakes="'′",
            )
        if words["behind runs and wickets"]:
            yield digit_rule(
                "score of cricket",
                r"(?<![\w/.,-])(?P<runs>\d{2,3})/(?P<wickets>\d|10)"
                rf"(?=\ {any_of(entries(words['behind runs and wickets']))}(?![\p{{L}}\p{{M}}]))",
                lambda match: spaced(
                    f"{self._say(int(match['runs']))} {words['between runs and wickets']} "
                    f"{self._say(int(match['wickets']))}"
                ),
                wakes="/",
            )

    def _heat(self, match: Any) -> str | None:
        """The highest or the lowest temperature; None if the text does not have both."""
        pairs = self._pairs("greatest and least")
        found = regex.findall(rf"(?<!\p{{L}}){any_of(pairs)}(?!\p{{L}})", match.string.lower())
        return pairs[match["short"].lower()] if len({pairs[each] for each in found}) > 1 else None

    def _greatest(self, match: Any) -> str:
        said = self._pairs("greatest and least")[match["short"]]
        return f"{said}{match['many']}{last_stop(match)}"

    def _minutes(self, match: Any) -> str | None:
        """The words for `25'`; None if the sign ends a quotation."""
        quoted = _OPENS_A_QUOTATION.search(match.string, 0, match.start())
        return None if quoted else self._counted(int(match["whole"]), self._units["min"])

    def _entitled(self, titles: Mapping[str, str], match: Any) -> str | None:
        before = _WORD_BEFORE.search(match.string, max(0, match.start() - _BEFORE_CHARS), match.start())
        if before and is_label(before[1], self._language):
            return None
        title, name = titles[match["name"]], match["name"]
        return f"{title}{name}" if title.endswith("'") else f"{title} {name}"

    def _houses(self, match: Any) -> str:
        return " ".join(
            self._say(int(part)) if part.isdecimal() else part
            for part in regex.findall(r"\d+|\p{L}+", match.group())
        )

    def _exercises(self, match: Any) -> str:
        said = self._words["exercises" if match["more"] else "exercise"]
        return said.capitalize() if match["short"] == "Es" else said

    def _applications(self, match: Any) -> str | None:
        """The word for `CV` if it means curricula: the words beside it say what is done with them (`ho
        ricevuto 100 CV`), or a word near it is about an application for a job, and none is about an engine.
        Else None."""
        before = match.string[max(0, match.start() - _AROUND_CHARS) : match.start()]
        behind = match.string[match.end() : match.end() + _AROUND_CHARS]
        sought, beside, engine = (
            rf"(?<!\p{{L}})(?i:{any_of(entries(self._words[row]))})"
            for row in ("near an application", "beside an application", "near an engine")
        )
        found = (
            regex.search(sought, before + behind)
            or regex.search(rf"{beside}\p{{L}}*\ (?:{_ABOUT}\ )?\d+\ $", before)
            or regex.match(rf"\ {beside}\p{{L}}*i\b", behind)
        )
        return "curriculum" if found and not regex.search(engine, before + behind) else None

    def _is_letter(self, match: Any) -> bool:
        """Whether a short unit is the letter of an article: `art. 5 d`."""
        if self._part is None or len(match["unit"]) > 1:
            return False
        start = match.start()
        return self._part.search(match.string, max(0, start - _BEFORE_CHARS), start) is not None
