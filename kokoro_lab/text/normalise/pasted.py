"""Rules for pasted text of any language: bullets, musical notes, times of subtitles, paths of menus."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import regex

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise.pictographs import RATING
from kokoro_lab.text.normalise.rules import Rule
from kokoro_lab.text.tables import any_of, entries, rows, words

_ADDED_TO_A_PRICE = words(__package__)["added to a price"]
_PERMISSIONS = r"(?<!\S)(?=.-*+r)(?=\S*-)[-dlbcps](?:[r-][w-][xsStT-]){3}[.+@]?(?!\S)"
_TIME = r"(?:\d+:)?[0-5]\d:[0-5]\d[.,]\d{3}"

RULES: tuple[Rule, ...] = (
    Rule(
        "times of a subtitle",
        rf"^(?:\d+\s+)?{_TIME}\ *-->\ *{_TIME}(?:\ .*)?$",
        lambda match: "",
        wakes=">",
    ),
    Rule(
        "sign of a list or a song",
        r"^→\ |[▲△▼▽](?!\ ?[-+−]?[$€£¥]?\d)\ ?|[◦‣⁃▪▫●■◆◇▸►➜➤☐♩♪♫♬]\ ?|\ [♩♪♫♬]",
        lambda match: "",
        wakes="→▲△▼▽◦‣⁃▪▫●■◆◇▸►➜➤☐♩♪♫♬",
    ),
    Rule("head of subtitles", r"^WEBVTT(?:\ -\ .*)?$", lambda match: "", wakes="W"),
    Rule(
        "speaker of a subtitle",  # `<v Anna>Where were you?</v>`
        r"<v(?:\.\w+)?\ (?P<name>\p{L}[^<>]{0,40})>|</v>",
        lambda match: f"{match['name'].strip()}:" if match["name"] else "",
        wakes=">",
    ),
    Rule(
        "place of a subtitle",  # `{\an8}`
        r"\{\\an?\d{1,2}\}",
        lambda match: "",
        wakes="\\",
    ),
    Rule(
        "plus of a list or a changelog",
        rf"^\+\ (?=\p{{L}}{{2}})(?!(?i:{any_of(_ADDED_TO_A_PRICE)})(?!\p{{L}}))",
        lambda match: "",
        wakes="+",
    ),
    Rule("another speaker", r"(?:^|(?<=[.!?…♪)\]]\ ))>>+\ ?(?=\p{Lu})", lambda match: "", wakes=">"),
    Rule("end of a heading", r"(?<=\S)\ \#{2,}(?=\s|$)", lambda match: "", wakes="#"),
    Rule(
        "sign of a note",
        r"""(?<=\p{L}{4}|(?<!\p{L})(?!sin|cos|tan|log|exp|min|sec|mol|rad|bar)\p{L}{3}|[.,;:!?…"”')\]»])
        [⁰¹²³⁴⁵⁶⁷⁸⁹]+(?:(?:[,\ –⁻-]|,\ )[⁰¹²³⁴⁵⁶⁷⁸⁹]+)*(?![\p{L}\p{N}⁺⁻])
        |(?:^|(?<=[.;,]\ ))[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}\ ?(?=\p{Lu}\p{Ll}{2}|$)  # but ¹³C and ³He""",
        lambda match: "",
        wakes="⁰¹²³⁴⁵⁶⁷⁸⁹",
    ),
    Rule(
        "step of a menu",
        r"(?<=\p{Lu}\p{L}+(?:[\ -]\p{Ll}+)?|[\p{Lo}\p{M}])\ "
        r"(?:[>›→»]|(?<!“[^“”]*)”)(?=\ (?:\p{Lu}\p{L}|\p{Lo}))",
        lambda match: ",",
        wakes=">›→»”",  # `»` was made `”`
    ),
    Rule(
        "brackets of an address",
        r"<(?=[^<>\s]+[@:][^<>\s]+>)|(?<=<[^<>\s]+[@:][^<>\s]+)>",
        lambda match: "",
        wakes="<>",
    ),
    Rule(
        "bar between parts",  # but in `Use a | b to pipe.`
        r"""(?<=[\p{L}\p{N}.!?)\]%$€£])(?<!\(\p{L})\ \|
        (?=\ (?:[\p{Lu}\p{Lo}\p{N}$€£]|\+\d|www\.|https?:|[\w.+-]+@\w)|\ [^|.!?]*(?:\ \|[^|.!?]*)*$)""",
        lambda match: ",",
        wakes="|",
    ),
    Rule(
        "permissions of a file",  # as `ls -l` shows them: `-rw-r--r--`
        _PERMISSIONS,
        lambda match: " ".join(filter(str.isalpha, match.group().upper())),
        wakes="-",
    ),
    Rule(
        "size of a file",  # `4.0K` in the same line
        rf"(?<={_PERMISSIONS}\ [^\n]{{1,80}}\ \d{{1,4}}(?:\.\d)?)[KMGT](?=\ )",
        lambda match: match.group(),
        wakes="-",
    ),
    Rule(
        "minute of a match",  # `45'+2`
        r"(?<=(?<![\p{L}\p{N}.,'′])\d{1,3})['′]\ ?(?=\+\ ?\d{1,2}(?![\d\"″]))",
        lambda match: " ",
        wakes="+",
    ),
    Rule("drawn-out end", r"(?<=\p{L})~+(?=[\s!?.,…]|$)", lambda match: "", wakes="~"),
    Rule(
        "dashes",
        r"(?<=\s)(?:-{2,3}|[─━])(?=\s)|(?<=[\p{L}\p{N}.,;:!?…)_*][\"”']{0,2})(?<!<!)(?:-{2,3}|[─━])(?=[\p{L}\s\"“”'(_*]|$)",
        lambda match: "—" if match.string[match.start() - 1].isspace() else " —",
        wakes="-─━",
    ),
)
_NUMERALS = "".join(
    map(chr, (*range(0x2160, 0x2180), *range(0x2460, 0x249C), 0x24EA, *range(0x2776, 0x2794)))
)


def numerals(cardinal: Callable[[int], str]) -> Rule:
    """A number in one sign, `Ⅻ` or `①`, in the words that `cardinal` has for it."""
    return Rule(
        "numeral in one sign",
        rf"[{_NUMERALS}]",
        lambda match: cardinal(int(unicodedata.numeric(match.group()))),
        wakes=_NUMERALS,
    )


def sets(number: Callable[[str], str], to: str) -> Callable[[Any], str | None]:
    """What puts the scores of several sets, `6-4, 3-6`, into words, with `to` for the dash. It gives None if
    each pair counts up: those may be ranges of pages."""

    def said(match: Any) -> str | None:
        pairs = regex.findall(r"(\d+)-(\d+)", match.group())
        if all(int(left) < int(right) for left, right in pairs):
            return None
        words = regex.sub(r"\d+", lambda found: number(found.group()), match.group())
        return str(words.replace("-", to))

    return said


_MOST_STARS = 9
"""A longer row is an ornament, whose stars nobody counts."""
_NUMBER_OF_STARS = regex.compile(r"(?:\d[.,/]\d|½|(?<![\d.,/])(\d))\ ?$")


def stars(language: str, cardinal: Callable[[int], str]) -> Rule:
    """A rating in stars, `★★★★☆` or `⭐⭐⭐⭐`, in the words of a language, given by its two letters. In
    Japanese, a row of `★` alone is none."""
    row = next(each for each in rows(__package__, "stars.tsv") if each["language"] == language)
    agreeing = dict(pair.split("=") for pair in entries(row["agreeing"]))

    def said(match: Any) -> str | None:
        full, empty = (sum(map(match.group().count, signs)) for signs in ("★⭐", "☆"))
        number = _NUMBER_OF_STARS.search(match.string, 0, match.start())
        repeated = number and number[1] in (None, str(full))  # `4.5 ⭐⭐⭐⭐`
        if repeated or full + empty > _MOST_STARS:
            return str(regex.sub(r"\{full\}つ?", "", row["stars"])).strip()
        numbers = (cardinal(each) for each in (full, full + empty))
        words = (agreeing.get(each, each) for each in numbers)
        return row["of_all" if empty else "stars"].format_map(dict(zip(("full", "all"), words, strict=True)))

    least = "" if language == "ja" else "|★{2,}☆*"
    return Rule(
        "rating in stars",
        rf"(?<![★☆⭐\ufe0f])(?:{RATING.pattern}{least}|★+☆+)(?![★☆⭐])",
        said,
        wakes="★⭐",
    )


_MAY_BE_LEFT_OUT = regex.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]|-->|^WEBVTT|\{\\an?\d")
_READ = regex.compile(r"\p{L}+|\p{Nd}[\p{Nd}:.,]*|\p{No}+")


def left_out(text: str, said: AlignedText) -> Iterator[tuple[int, int]]:
    """Ranges of `text` that these rules removed: no character of `said` stands for them."""
    if _MAY_BE_LEFT_OUT.search(text):
        heard = {i for start, end in zip(said.starts, said.ends, strict=True) for i in range(start, end)}
        yield from (found.span() for found in _READ.finditer(text) if heard.isdisjoint(range(*found.span())))
