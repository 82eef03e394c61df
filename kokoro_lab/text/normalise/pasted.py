"""What is pasted in any language: signs of lists and songs, notes, times of subtitles, paths of menus."""

from __future__ import annotations

from kokoro_lab.text.normalise.rules import Rule

_TIME = r"(?:\d+:)?[0-5]\d:[0-5]\d[.,]\d{3}"
_CODE_OF_SUBTITLES = r"(?:\d+\s+)?"

RULES: tuple[Rule, ...] = (
    Rule(
        "times of a subtitle",
        rf"^{_CODE_OF_SUBTITLES}{_TIME}\ *-->\ *{_TIME}(?:\ .*)?$",
        lambda match: "",
        wakes=">",
    ),
    Rule(
        "sign of a list or a song", r"[◦‣⁃▪▫●■▸►☐♩♪♫♬]\ ?|\ [♩♪♫♬]", lambda match: "", wakes="◦‣⁃▪▫●■▸►☐♩♪♫♬"
    ),
    Rule(
        "sign of a note",
        r"(?<=\p{L}{4}|[.,;:!?…\"”')\]»])[⁰¹²³⁴⁵⁶⁷⁸⁹]+(?:[,\ ][⁰¹²³⁴⁵⁶⁷⁸⁹]+)*(?![\p{L}\p{N}⁺⁻])",
        lambda match: "",
        wakes="⁰¹²³⁴⁵⁶⁷⁸⁹",
    ),
    Rule(
        "step of a menu",
        r"(?<=\p{Lu}\p{L}+)\ [>›→»](?=\ \p{Lu}\p{L})",
        lambda match: ",",
        wakes=">›→»",
    ),
    Rule("drawn-out end", r"(?<=\p{L})~+(?=[\s!?.,…]|$)", lambda match: "", wakes="~"),
    Rule(
        "dashes",
        r"(?<=\s)-{2,3}(?=\s)|(?<=[\p{L}\p{N}.,;:!?…\"”')_*])(?:-{2,3}|[─━])(?=[\p{L}\s\"“”'(_*]|$)",
        lambda match: " — ",
        wakes="-─━",
    ),
)
