"""Addresses, telephone numbers, versions and other codes in the languages of `others.tsv`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from kokoro_lab.text.normalise.other_numbers import OtherNumbers
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import any_of, entries

_WHOLE = r"(?<![.,;:!?…\"”')\]])"
_ADDRESSES = (
    (r"(?<![\w.])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+", "@"),
    (rf"(?<!\w)(?:(?:https?|ftp|file)://|www\.)[^\s<>\"“”]+{_WHOLE}", ":w"),
    (rf"(?<![\w/.])~?(?:/[\p{{L}}\d_.-]+){{2,}}/?{_WHOLE}", "/"),
)
"""Addresses of mail, of the web, and of files: the pattern of each, and a character that all of its matches
have."""
_PARTS = regex.compile(r"[\p{L}\p{M}]+|\d+|.")
_SAYABLE = regex.compile(r"(?=\p{L}{3}).*[aeiouyáàâãéèêíóôõúü]", regex.IGNORECASE)
_OWN_NUMBERS = {
    "it": r"800[ -]?\d{3}[ -]?\d{3}|3\d\d[ -]?\d{3}[ -]?\d{3,4}",
    "pt_BR": r"\d\d\ [2-5]\d{3}-\d{4}|(?:400[34]|3003)-\d{4}|"
    r"(?:\d\d\ )?9\d{4}-\d{4}|\d{5}-\d{3}|\d{3}\.\d{3}\.\d{3}-\d\d|\d\d\.\d{3}\.\d{3}/\d{4}-\d\d",
    "hi": r"[6-9]\d{4}\ ?\d{5}|(?:(?<=\p{M}?\p{L}\p{M}*\ ?[-–]\ )|(?<=पिन(?:\ ?कोड)?\ ?:?\ ))[1-9]\d{5}",
}
"""Locale → a pattern for its mobile numbers; in Brazil, also for postal codes and for the numbers of persons
and firms."""


class OtherCodes(OtherNumbers):
    """The rules for codes and addresses, which are read digit by digit or sign by sign."""

    def _code_rules(self) -> Iterator[Rule]:
        words = self._words
        yield from (Rule("address", pattern, self._address, wakes=wakes) for pattern, wakes in _ADDRESSES)
        yield digit_rule(
            "telephone number with a country",
            r"(?<![\w+])\+(?P<country>\d{1,3})[ -]?"
            r"(?P<rest>(?:\(\d{1,4}\)[ -]?)?\d{1,5}(?:[ .-]?\d{2,5}){1,5})(?!\w|[.,]\d)",
            self._abroad,
        )
        yield digit_rule(
            "telephone number in pairs",
            r"(?<![\w.,-])0[1-9](?:(?P<by>[ .-])\d\d(?:(?P=by)\d\d){3}|\d{8})(?!\w|[.,-]\d)",
            lambda match: ", ".join(map(self._pair, regex.findall(r"\d\d", match.group()))),
        )
        yield digit_rule(
            "telephone number",
            r"(?<![\w.,])(?:\(\d{2,4}\)\s?|0\d{1,4}[ /-])\d{3,5}[ -]?\d{3,5}(?!\w|[.,]\d)",
            self._dialled,
        )
        own = _OWN_NUMBERS.get(words["locale"], "(?!)")
        yield digit_rule("number of its country", rf"(?<![\w.,/-])(?:{own})(?![\w-]|[.,]\d)", self._dialled)
        yield digit_rule(
            "number that is said to be a telephone's",
            rf"(?<=\b{any_of(entries(words['before a telephone number']))}\.?\ ?:?\ )"
            r"(?:(?<=:\ ?)\d|\d(?=[\d ./-]*[।.]?$|(?:[ ./-]?\d){6}))(?:[ ./-]?\d){4,13}(?![\w/-]|[.,]\d)",
            self._dialled,
            ignore_case=True,
        )
        yield digit_rule(
            "code",
            rf"(?<=\b{any_of(entries(words['before a code']))}\ ?:?\ )\d{{4,8}}(?![\w/-]|[.,]\d)",
            self._dialled,
            ignore_case=True,
        )
        yield digit_rule(
            "version",
            r"(?<![\w.,-])(?:(?P<letter>v(?=\d)|v\.?\ ?(?=\d+\.\d))(?P<parts>\d+(?:\.\d+)*)"
            r"|(?!\d{1,3}(?:\.\d{3})+(?![\d.])|\d\d?\.\d\d?\.(?:\d{4}|\d\d)(?![\d.]))"  # thousands, dates
            r"(?P<parts>\d{1,5}(?:\.\d{1,5}){2,3}))(?![\w-]|[.,]\d)",
            self._version,
        )
        laws = entries(words["numbered by year"])
        if laws:
            yield digit_rule(
                "law of a year",
                rf"(?<={any_of(laws)}\ (?:n\.º?\ |nº\ |n°\ )?[\d.]{{1,7}})/(?=(?:19|20)?\d\d(?!\w|[.,]\d))",
                lambda match: f" {words['of a year']}",
            )

    def _address(self, match: Any) -> str:
        """An address sign by sign, without `https://`. Parts that are no words are spelt: `jo@exemple.fr`, "J
        O arobase exemple point F R"."""
        said = []
        for part in _PARTS.findall(regex.sub(r"^\w+://", "", match.group())):
            if part.isdecimal():
                said.append(self._digits(part))
            elif part.isalpha() and not _SAYABLE.match(part):
                said += part.upper()
            else:
                said.append(self._signs.get(part, part))
        return " ".join(said)

    def _dialled(self, match: Any) -> str:
        """Groups of digits, each digit by its name, with a pause between the groups."""
        return ", ".join(map(self._digits, regex.findall(r"\d+", match.group())))

    def _abroad(self, match: Any) -> str:
        """The words for a telephone number with the code of its country. The French say the other digits in
        pairs."""
        pairs = self._words["locale"] == "fr"
        groups = regex.findall(r"\d+", match["rest"].removeprefix("(0)"))
        said = [(self._pair if pairs and len(group) == 2 else self._digits)(group) for group in groups]
        return ", ".join((f"{self._signs['+']} {self._say(int(match['country']))}", *said))

    def _version(self, match: Any) -> str:
        point = self._signs["."] if self._words["decimal mark"] == "," else self._words["decimal mark, said"]
        said = f" {point} ".join(
            self._digits(part) if part[0] == "0" or len(part) > 4 else self._say(int(part))
            for part in match["parts"].split(".")
        )
        return f"{self._words['version']} {said}" if match["letter"] else said
