"""Japanese dates, clock times, durations, and pairs of numbers with a colon that are no time."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.japanese.numbers import DIGITS, cardinal, digits, number
from kokoro_lab.text.normalise.japanese.written import (
    NAMES,
    NO_LATIN_AFTER,
    NO_LATIN_BEFORE,
    PLAIN,
    START,
    digits_of_either_width,
    either_width,
    with_colon,
    with_slash,
    with_tilde,
)
from kokoro_lab.text.normalise.rules import Rule, in_calendar

FIRST_SHORT_YEAR = 50
"""Years of two digits from this on are of the 1900s, smaller ones of the 2000s."""
FIRST_YEAR, LAST_YEAR = 1000, 2199
"""Between these, four digits in front of a month are taken for a year."""

# A day of the week in brackets behind a date, perhaps with a holiday beside it
_DAY = "[月火水木金土日]"
_WEEKDAY = r"\((?<weekday>[月火水木金土日])(?:曜日?)?(?:[・,、/ ]?(?<holiday>祝日?|休日?|振休))?\)"
_NOTHING_ON = r"(?![\d/]|[.\-]\d|\s?[=+×÷*])"

# Words before a day, and words behind one: beside them, 3/5 is a date and not three fifths
_DAY_BEFORE = (
    r"(?:日|締め?切り?|〆切|期限|納期|開催|発売|予定|今年|来年|去年|昨年|毎年|本日|今日|明日|昨日)"
    r"(?:は|が|を|の|、|:|,|\s)*"
)
_DAY_BEHIND = r"""
    \s*(?:に(?!なる|する|減|増|縮|分)|から(?!なる)|まで|~|開催|開始|発売|締|〆|公開|付け?(?!近)|号|現在|時点|頃|ごろ|以降|以前|発
    |の?(?:朝|昼|夜|夕方|午前|午後|早朝|深夜|当日|前日|翌日)|\s\d{1,2}:\d\d|\d{1,2}時)
"""
_SHARE_AROUND = r"(?:大さじ|小さじ|約|の|確率は|割合は|およそ)"
_PARTS = frozenset((*range(2, 13), 16))
"""Denominators that are usual in fractions. With one of them, `n/d` without further words is read as a
fraction, otherwise as a date."""

LAST_HOUR = 29
"""Broadcasters count on after midnight: 25:30 is half past one of the next morning."""

_HALF = r"(?:[AaPp]\.?[Mm]\.?)"
_RATIO_AROUND = r"(?:比|割合|アスペクト)"


def date(year: int | None, month: int | None, day: int | None) -> str:
    """Words for a date or a part of one: 二千二十四年三月五日."""
    parts = ((year, "年"), (month, "月"), (day, "日"))
    return "".join(f"{cardinal(value)}{unit}" for value, unit in parts if value is not None)


def _days(match: Any) -> str:
    """`月〜金` and `土・日`: each a day of the week."""
    said = "".join(f"{each}曜" if each.isalpha() else each for each in match.group())
    return said.translate(dict.fromkeys(map(ord, "~～〜-"), "から"))


def _weekday(match: Any) -> str:
    if not match["weekday"]:
        return ""
    return f"{match['weekday']}曜日{NAMES['holiday'].get(match['holiday'], '')}"


def _full(match: Any) -> str | None:
    year, month, day = (int(match[name]) for name in ("year", "month", "day"))
    if month > 12 and match.start("day") < match.start("year"):  # as in Europe: the day first
        month, day = day, month
    if len(match["year"]) == 2:
        year += 2000 if year < FIRST_SHORT_YEAR else 1900
    return date(year, month, day) + _weekday(match) if in_calendar(year or None, month, day) else None


def _year_month(match: Any) -> str | None:
    year, month = int(match["year"]), int(match["month"])
    known = FIRST_YEAR <= year <= LAST_YEAR and in_calendar(year, month, None)
    return date(year, month, None) if known else None


def _season(match: Any) -> str | None:
    """The words for two years in a row, such as `2024/25`; None if the second does not follow the first."""
    year, following = int(match["year"]), int(match["month"])
    known = FIRST_YEAR <= year <= LAST_YEAR and (year + 1) % 100 == following
    return f"{cardinal(year)}から{cardinal(following)}" if known else None


def _month_day(match: Any) -> str | None:
    month, day = int(match["month"]), int(match["day"])
    if not in_calendar(None, month, day):
        return None
    told = match["weekday"] or match["before"] is not None or match["behind"] is not None
    parts = month == 1 or (day in _PARTS and month % day and not month >= 10 > day)
    if not told and (match["share"] is not None or parts):
        return None  # a fraction
    return date(None, month, day) + _weekday(match)


def _era(match: Any) -> str | None:
    year, month, day = (int(match[name]) if match[name] else None for name in ("year", "month", "day"))
    if month is not None and not in_calendar(None, month, day):
        return None
    said = "元年" + date(None, month, day) if match["year"] == "元" else date(year, month, day)
    return NAMES["era"][match["era"].upper()] + said


def _spelt_year(match: Any) -> str:
    return cardinal(int("".join(str("〇一二三四五六七八九".index(c)) for c in match["year"])))


def time(hour: int, minute: int | None, second: int | None, half: str | None) -> str:
    """Words for a clock time: 午後二時三十分. A full hour has no minutes unless it has seconds."""
    said = {"am": "午前", "pm": "午後", None: ""}[half] + f"{cardinal(hour)}時"
    if minute or second:
        said += f"{cardinal(minute or 0)}分"
    return f"{said}{cardinal(second)}秒" if second else said


def _clock(match: Any) -> str | None:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    second = int(match["second"]) if match["second"] else None
    half = match["before"] or match["behind"]
    if hour > (12 if half else LAST_HOUR):
        return None
    said = time(hour, minute, second, f"{half[0].lower()}m" if half else None)
    return (
        f"{said.removesuffix('秒')}点{digits(match['decimals'])}秒" if second and match["decimals"] else said
    )


def _duration(match: Any) -> str | None:
    said = "".join(
        f"{number(match[name])}{unit}"
        for name, unit in (("hours", "時間"), ("minutes", "分"), ("seconds", "秒"))
        if match[name]
    )
    return said or None


def _ratio(match: Any) -> str:
    return "対".join(number(part) for part in match.group().replace(" ", "").split(":"))


RULES: tuple[Rule, ...] = (
    Rule(
        "days of the week",
        rf"(?<![\p{{Han}}\d]){_DAY}(?:[~～〜・-]{_DAY})+(?![\p{{Han}}\d])",
        _days,
        wakes="月火水木金土日",
    ),
    digits_of_either_width(
        "date without a sign between",
        rf"{START}(?<![\w-])(?<year>19\d\d|20\d\d)(?<month>[01]\d)(?<day>[0-3]\d)(?<weekday>)(?<holiday>)(?![\w.,-])",
        _full,
    ),
    with_slash(
        "date, the year in two digits",
        rf"{START}(?<!/)'?(?<year>\d\d)/(?<month>\d\d?)/(?<day>\d\d?){_NOTHING_ON}(?:\s?{_WEEKDAY})?",
        _full,
    ),
    with_tilde(
        "day that ends a range",
        r"(?<=\d/\d{1,2}\s?~\s?)(?<day>\d{1,2})(?![\d/:.]|\s?[\p{L}%])",
        lambda m: date(None, None, int(m["day"])),
    ),
    digits_of_either_width(
        "zero in front",
        r"(?<=第|(?<![\d.,:/]))0+(?<n>[1-9]\d?)(?=[年月日時分秒]|(?<=第\d+))",
        lambda m: cardinal(int(m["n"])),
    ),
    digits_of_either_width(
        "date, the year first",
        rf"""{START}(?<year>\d{{4}})(?:/(?<month>\d{{1,2}})/(?<day>\d{{1,2}})
            |-(?<month>\d{{1,2}})-(?<day>\d{{1,2}})|\.\s?(?<month>\d{{1,2}})\.\s?(?<day>\d{{1,2}}))
            (?!\d|[/\-.]\d)(?:\s?{_WEEKDAY})?(?:T(?=\d\d:\d\d))?""",
        _full,
    ),
    with_slash(
        "date, the year last",
        rf"{START}(?<month>\d{{1,2}})/(?<day>\d{{1,2}})/(?<year>\d{{4}}){_NOTHING_ON}(?:\s?{_WEEKDAY})?",
        _full,
    ),
    digits_of_either_width(
        "year and month", rf"{START}(?<!/)(?<year>\d{{4}})[/-](?<month>\d{{1,2}}){_NOTHING_ON}", _year_month
    ),
    digits_of_either_width(
        "season", rf"{START}(?<!/)(?<year>\d{{4}})[/-](?<month>\d{{2}}){_NOTHING_ON}", _season
    ),
    with_slash(
        "month and day",
        rf"""{START}(?<![/A-Za-z])(?:(?<=(?<before>{_DAY_BEFORE}|\d/\d{{1,2}}(?:~|から)))|(?<=(?<share>{_SHARE_AROUND}))|)
            (?<month>\d{{1,2}})/(?<day>\d{{1,2}}){_NOTHING_ON}(?:\s?{_WEEKDAY})?(?=(?<behind>{_DAY_BEHIND})?)""",
        _month_day,
    ),
    digits_of_either_width(
        "era by its letter",
        rf"""{NO_LATIN_BEFORE}(?<era>[MTSHR])(?<year>\d{{1,2}})
            [./](?<month>\d{{1,2}})[./](?<day>\d{{1,2}})(?!\d)""",
        _era,
    ),
    either_width(
        "year of an era by its letter",
        rf"{NO_LATIN_BEFORE}(?<era>[MTSHR])(?<year>\d{{1,2}}|元)(?<month>)(?<day>)(?=年)",
        lambda match: (_era(match) or "").removesuffix("年"),
    ),
    digits_of_either_width(
        "year without its century", r"(?<![\w])'(?<year>\d\d)(?=年)", lambda m: cardinal(int(m["year"]))
    ),
    either_width("year in single numerals", r"(?<year>[一二][〇一二三四五六七八九]{3})(?=年)", _spelt_year),
    either_width(
        "single numerals",
        r"(?<![十百千万億])[一二三四五六七八九][〇一二三四五六七八九]*〇[〇一二三四五六七八九]*(?![十百千])|〇(?=[・、]?\d)",
        lambda match: match.group().replace("〇", DIGITS[0]),
    ),
    either_width("day of the week", rf"(?<=日|\d|毎週|\))\s?{_WEEKDAY}", _weekday),
)

TIMES: tuple[Rule, ...] = (
    digits_of_either_width(
        "hundredths of a second", r"(?<=\d秒)\d\d(?!\d)", lambda match: digits(match.group()), wakes="秒"
    ),
    digits_of_either_width(
        "minutes and seconds by their ticks",
        rf"{START}(?<minutes>\d{{1,2}})['′](?<seconds>[0-5]\d)[\"″](?<hours>)",
        _duration,
    ),
    with_colon(
        "aspect ratio",
        rf"(?<={_RATIO_AROUND}.{{0,3}}){START}\d+:\d+(?![\d:])|{START}\d+:\d+(?=の?{_RATIO_AROUND})",
        _ratio,
    ),
    with_colon(
        "clock time",
        rf"""{START}(?<!\d:)(?:{NO_LATIN_BEFORE}(?<before>{_HALF})\s?)?(?<hour>\d{{1,2}}):(?<minute>[0-5]\d)
            (?::(?<second>[0-5]\d)(?:\.(?<decimals>\d+))?)?(?![\d:])(?:\s?(?<behind>{_HALF}){NO_LATIN_AFTER})?""",
        _clock,
    ),
    digits_of_either_width(
        "hour of a half day",
        rf"""{NO_LATIN_BEFORE}(?<before>{_HALF})\s?(?<hour>\d{{1,2}})(?<minute>)(?<second>)(?<behind>)(?![\d:.,])時?
            |{START}(?<hour>\d{{1,2}})\s?(?<behind>{_HALF}){NO_LATIN_AFTER}""",
        _clock,
    ),
    digits_of_either_width(
        "duration",
        rf"""{START}(?:(?<hours>{PLAIN})\s?(?:hrs?|h)\s?(?<minutes>\d+)\s?(?:mins?|m)
            |(?<hours>{PLAIN})\s?(?:hours?|hrs?|h)|(?<minutes>{PLAIN})\s?(?:minutes?|mins?)
            |(?<seconds>{PLAIN})\s?(?:seconds?|secs?|s)){NO_LATIN_AFTER}(?![/\d])""",
        _duration,
        wakes="hms",
    ),
    with_colon("ratio", rf"{START}(?<!:){PLAIN}(?:\s?:\s?{PLAIN})+(?![\d:])", _ratio),
)
