"""Rules for pasted text of any language: bullets, musical notes, times of subtitles, paths of menus."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

import regex

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise.rules import Rule

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
    Rule("another speaker", r"(?:^|(?<=[.!?…♪)\]]\ ))>>+\ ?(?=\p{Lu})", lambda match: "", wakes=">"),
    Rule("end of a heading", r"(?<=\S)\ \#{2,}(?=\s|$)", lambda match: "", wakes="#"),
    Rule(
        "sign of a note",
        r"""(?<=\p{L}{4}|(?<!\p{L})(?!sin|cos|tan|log|exp|min|sec|mol|rad|bar)\p{L}{3}|[.,;:!?…"”')\]»])
        [⁰¹²³⁴⁵⁶⁷⁸⁹]+(?:(?:[,\ –⁻-]|,\ )[⁰¹²³⁴⁵⁶⁷⁸⁹]+)*(?![\p{L}\p{N}⁺⁻])""",
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
        (?=\ [\p{Lu}\p{Lo}\p{N}$€£]|\ [^|.!?]*(?:\ \|[^|.!?]*)*$)""",
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


_MAY_BE_LEFT_OUT = regex.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]|-->")
_READ = regex.compile(r"\p{L}+|\p{Nd}[\p{Nd}:.,]*|\p{No}+")


def left_out(text: str, said: AlignedText) -> Iterator[tuple[int, int]]:
    """Ranges of `text` that these rules removed: no character of `said` stands for them."""
    if _MAY_BE_LEFT_OUT.search(text):
        heard = {i for start, end in zip(said.starts, said.ends, strict=True) for i in range(start, end)}
        yield from (found.span() for found in _READ.finditer(text) if heard.isdisjoint(range(*found.span())))
