"""Dates, days and clock times of a language with a column in `others.tsv`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, cast

import regex

from kokoro_lab.text.normalise.other_numbers import OtherNumbers, spaced
from kokoro_lab.text.normalise.roman import roman
from kokoro_lab.text.normalise.rules import POINT_WITHIN, Rule, digit_rule, in_calendar
from kokoro_lab.text.tables import CountedUnit, Gender, any_of, entries

_QUARTERS = {15: "सवा", 30: "साढ़े", 45: "पौने"}
_HALVES = {1: "डेढ़", 2: "ढाई"}
_CENTURY_TURNS_AT = 50
"""A year of two digits below this is of the 2000s, else of the 1900s."""


class OtherDates(OtherNumbers):
    """The rules for dates and times, and what `say-as` needs of them."""

    def date(self, year: int | None, month: int | None, day: int | None) -> str:
        """Words of a date, day first."""
        parts = []
        if day is not None:
            parts.append(self._words["first of a month"] if day == 1 else self._say(day))
        if month is not None:
            parts.append(self._months[month])
        if year is not None:
            parts.append(self._year(year))
        return spaced(f" {self._words['between parts of a date']} ".join(parts))

    def time(self, hour: int, minute: int | None, second: int | None, half: str | None) -> str:
        """Words of a clock time; a time with AM or PM is changed to the 24-hour clock."""
        if half is not None:
            hour = hour % 12 + (12 if half == "pm" else 0)
        words = self._words
        hours = words["hours and minutes"] if minute else ""
        unit = CountedUnit(
            hours or words["hour"], hours or words["hours"], cast(Gender, words["gender of hours"])
        )
        said = self._counted(hour, unit) if hour else f"{self._say(0)} {unit.one}"
        for part, name in ((minute, "minutes"), (second, "seconds")):
            if part:
                said += f" {words['and']} {self._say(part)} {words[name]}"
        return spaced(said)

    def _year(self, year: int) -> str:
        """The words for a year. Hindi says years from 1100 to 1999 in hundreds."""
        if self._words["locale"] == "hi" and 1100 <= year < 2000:
            return spaced(f"{self._say(year // 100)} सौ {self._say(year % 100) if year % 100 else ''}")
        return self.cardinal(year)

    @cached_property
    def _months(self) -> Mapping[int, str]:
        return dict(enumerate(entries(self._words["months"]), 1))

    @cached_property
    def _short_months(self) -> Mapping[str, str]:
        """Months by their first three letters, where these are used as an abbreviation."""
        latin = self._words["locale"] in ("it", "pt_BR")
        return {month[:3]: month for month in self._months.values()} if latin else {}

    @cached_property
    def _days(self) -> Mapping[str, str]:
        """Days of the week by their names and by their first three letters."""
        days = entries(self._words["days"])
        return {day: day for day in days} | {day[:3]: day for day in days}

    def _date_rules(self) -> Iterator[Rule]:
        marked = r"(?<![\w/.-])(?P<d>\d{1,2})(?P<by>[/.-])"
        yield digit_rule("date", rf"{marked}(?P<m>\d{{1,2}})(?P=by)(?P<y>\d{{4}})(?![\w/-])", self._day)
        yield digit_rule("date", r"(?<![\w/.-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?![\w-])", self._day)
        yield digit_rule(
            "date with a short year",
            r"(?<![\w/.-])(?P<d>\d\d?)(?:(?P<by>[/.-])(?P<m>\d\d)|(?P<by>/)(?P<m>\d))(?P=by)(?P<y>\d\d)(?![\w/-]|[.,]\d)",
            self._day,
        )
        yield digit_rule(
            "date with a Roman month",
            rf"{marked}(?P<m>[IVX]{{1,4}})(?P=by)(?P<y>\d{{4}}|\d\d)(?![\w/-])",
            self._day,
        )
        before = any_of((*entries(self._words["before a day"]), *self._days))
        yield digit_rule(
            "date without a year",
            rf"(?<=\b(?:(?i:{before})[.:]?|d[eua]l?\ \d\d?\ (?:au|al?))\ )"
            r"(?P<d>(?!0?[1-4]/[2-4]\b|6/8\b)[0-3]?\d)(?:[º°]|er)?"
            r"/(?P<m>0?[1-9]|1[0-2])(?![\w/]|[.,]\d|\ d)",
            self._day,
            wakes="/",
        )
        yield digit_rule(
            "date without a year",
            r"(?<![\w/.,-])(?:(?P<d>1)[º°]/(?P<m>0?[1-9]|1[0-2])|(?P<d>0[1-9])/(?P<m>0[1-9]|1[0-2])"
            r"|(?P<d>[12]\d|3[01])/(?P<m>0[1-9])|(?P<d>\d\d?)/(?P<m>\d\d?)(?=\ को))(?![\w/]|[.,]\d)",
            self._day,
            wakes="/",
        )
        yield digit_rule(
            "month and year",
            r"(?<![\w/.-])(?P<m>0[1-9]|1[0-2])/(?P<y>(?:19|20)\d\d)(?![\w/-])",
            self._day,
            wakes="/",
        )
        if self._words["before a year"]:
            behind = entries(self._words["behind a year"])
            before = any_of((*entries(self._words["before a year"]), *self._months.values()))
            yield digit_rule(
                "year",
                rf"(?<=\b{before},?\ )(?P<y>1[1-9]\d\d)(?![\d.,]\d)"
                rf"|(?<![\w.,-])(?P<y>1[1-9]\d\d)(?=\ {any_of(behind)}(?!\w))",
                lambda match: self._year(int(match["y"])),
            )
        if self._short_months:
            yield digit_rule(
                "short month",
                rf"(?<!\p{{L}})(?P<m>{any_of(self._short_months)})"
                r"(?:\.?(?=\ \d{4})|(?<=\d\ (?:de\ )?\p{L}{3})\.(?=[\s,;:!?)]|$))",
                self._short_month,
                ignore_case=True,
            )
        if self._days:
            day = any_of(self._days)
            months = any_of({*self._months.values(), *self._short_months})
            # Behind `mer.` a number alone may be 3 hours, and `mer` the sea
            dated = (
                rf"\d{{1,2}}(?:\ (?:de\ )?(?:{months}(?!\p{{L}})|\p{{L}}{{3,4}}\.)"
                r"|[/.:h-]\d|\ ?h\b|\ ?:(?!\d))"
            )
            yield Rule(
                "span of days of the week",
                rf"(?<![\p{{L}}-])(?P<a>{day})\.?(?:\ ?[-–]\ ?|\ (?P<word>au?|à|all?a?)\ )(?P<b>{day})"
                r"(?![\p{L}-])\.?",
                self._from_day_to_day,
                ignore_case=True,
            )
            articles = entries(self._words["articles before a short day"])
            if articles:
                yield Rule(
                    "short day of the week behind its article",
                    rf"(?<=(?<!\p{{L}}){any_of(articles)}\ )(?P<a>{day})(?<!\p{{L}}{{4}})\.(?=\ \p{{Ll}})",
                    lambda match: self._days[match["a"].lower()],
                    wakes=POINT_WITHIN,
                )
            yield digit_rule(
                "short day of the week",
                rf"(?<!\p{{L}}|\d\ )(?P<a>{day})(?<!\p{{L}}{{4}})\.,?(?=\ {dated})",
                lambda match: self._days[match["a"].lower()],
                ignore_case=True,
            )

    def _time_rules(self) -> Iterator[Rule]:
        yield digit_rule("time", r"(?<![\w:.,])(?P<h>\d{1,2}):(?P<m>[0-5]\d)\s?बजे", self._quarter)
        before = entries(self._words["before a time with a point"])
        if before:
            days = rf"{any_of(self._days)}\.?"
            yield digit_rule(
                "time",
                rf"(?<=\b(?:{any_of(before)}|(?i:{days})):?\ (?:\d{{1,2}}[.:]\d\d\ ?[-–]\ ?)?)"
                r"(?P<h>\d{1,2})[.:,](?P<m>[0-5]\d)(?![\w.,:]\d)",
                self._pointed,
            )
            yield digit_rule(
                "time",
                r"(?<![\w:.,])(?P<h>\d\d?):(?P<m>[0-5]\d)(?=\ ?[-–]\ ?\d\d?:\d\d)"
                r"|(?<=\d:\d\d\ ?[-–]\ ?)(?P<h>\d\d?):(?P<m>[0-5]\d)(?![\w:])",
                self._pointed,
            )
        yield digit_rule(
            "time",
            r"(?<![\w:.,])(?P<h>\d{1,2})(?:\s?h\s?(?P<m>[0-5]\d)"
            r"(?:\s?(?P<lasts>min|['′])\s?(?P<s>[0-5]?\d)(?:s\b|[\"″]|'')|(?:\s?(?P<lasts>min)\b)?)"
            r"|:(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?(?:\s?h(?:r?s)?\b)?(?:\s?(?P<half>[ap])(?:m\b|\.\s?m\.))?)"
            r"(?![\w:]|[.,]\d)",
            self._clock,
            ignore_case=True,
        )
        trains = entries(self._words["before a time with a point, but not with a colon"])
        if trains:
            yield digit_rule(
                "time",
                rf"(?<=\b{any_of(trains)}\ )(?P<h>\d{{1,2}})\.(?P<m>[0-5]\d)(?![\w.,:]\d)",
                self._pointed,
            )
        yield digit_rule(
            "hours before a stroke",
            r"(?<![\w:.,])(?P<h>\d\d?)\s?(?P<m>)(?P<s>)(?P<half>)h(?=\s?/\s?\d{1,2}\s?h)",
            lambda match: self.time(int(match["h"]), None, None, None),
            wakes="/",
        )
        yield digit_rule(
            "dash between times",
            r"(?<=\d\ ?h(?:\ ?[0-5]\d)?|"
            rf"\b{any_of(before or ['h'])}:?\ \d{{1,2}}[.:]\d\d|"
            rf"\b(?i:{any_of(self._days or ['h'])})\.?:?\ \d{{1,2}}[.:]\d\d|"
            r"\d:\d\d)\ ?[-–](?=\ ?\d{1,2}(?:\ ?h|[.:][0-5]\d))",
            lambda match: f" {self._words['to']}",
            wakes="-–",
        )

    def _day(self, match: Any) -> str | None:
        parts = match.groupdict()
        written = parts.get("y") or ""
        year = int(written) if written else None
        if year is not None and len(written) == 2:
            year += 2000 if year < _CENTURY_TURNS_AT else 1900
        month = int(match["m"]) if match["m"].isdecimal() else roman(match["m"]) or 0
        day = int(parts["d"]) if parts.get("d") else None
        return self.date(year, month, day) if in_calendar(year, month, day) else None

    def _short_month(self, match: Any) -> str:
        """A month; where "of" stands between the parts of a date, with it: `3 dez. 2024`."""
        of, before = self._words["between parts of a date"], match.string[: match.start()]
        said = self._short_months[match["m"].lower()]
        first = of and regex.search(r"\d\ $", before)
        last = of and regex.match(r"\ \d{4}", match.string[match.end() :])
        return f"{of if first else ''} {said} {of if last else ''}".strip()

    def _from_day_to_day(self, match: Any) -> str:
        first, last = (self._days[match[end].lower()] for end in "ab")
        return f"{first} {match['word'] or self._words['to']} {last}"

    def _clock(self, match: Any) -> str | None:
        hour, minute = int(match["h"]), int(match["m"])
        second, half = (match[part] for part in ("s", "half"))
        if hour > (12 if half else 23):
            return None
        if match["lasts"] and second:
            parts = ((hour, "h"), (minute, "min"), (int(second), "s"))
            return " ".join(self._counted(value, self._units[unit]) for value, unit in parts)
        said = self.time(hour, minute, int(second) if second else None, f"{half.lower()}m" if half else None)
        return f"{said} {self._units['min'].many}" if match["lasts"] and minute else said

    def _pointed(self, match: Any) -> str | None:
        hour, minute = int(match["h"]), int(match["m"])
        if hour > 23:
            return None
        return " ".join([self._say(hour), *([self._words["and"], self._say(minute)] if minute else [])])

    def _quarter(self, match: Any) -> str | None:
        """The words for a clock time in Hindi, which counts quarters of hours: a quarter past, half past, a
        quarter to the next."""
        hour, minute = int(match["h"]), int(match["m"])
        if hour > 23 or minute not in _QUARTERS:
            return self.time(hour, minute, None, None) if hour < 24 else None
        if minute == 30 and hour in _HALVES:
            return f"{_HALVES[hour]} {self._words['hours']}"
        hour = hour % 12 + 1 if minute == 45 else hour
        return f"{_QUARTERS[minute]} {self._say(hour)} {self._words['hours']}"
