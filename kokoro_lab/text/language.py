"""The languages that can be spoken, and the names by which a client may ask for them."""

from __future__ import annotations

import re
from importlib.util import find_spec

from kokoro_lab.errors import LanguageError
from kokoro_lab.extras import MISAKI
from kokoro_lab.text.tables import entries, rows

LANGUAGES = {row["tag"]: row for row in rows(__package__, "languages.tsv")}
"""Each language's row by its canonical tag: other names, among them the first letter of Kokoro's voices;
codes of ISO 639-2; the usual scripts, which need not be named in a tag; the mark between thousands, besides a
space; and the endings of ordinals in digits."""
SPOKEN = tuple(LANGUAGES)
"""Languages with a G2P here."""

_NAMES = {name: tag for tag, row in LANGUAGES.items() for name in (tag, *entries(row["names"]))}
_WHOLE = {tag[:2]: tag for tag in SPOKEN if tag != "en-gb"}
"""Language without its region → the tag that is spoken for all of its regions."""
_ISO_639_2 = {code: tag[:2] for tag, row in LANGUAGES.items() for code in entries(row["iso_639_2"])}
_WRITTEN_IN = {(tag[:2], script) for tag, row in LANGUAGES.items() for script in entries(row["scripts"])}
_BRITISH = ("au", "ie", "in", "nz", "sg", "za")
"""Regions in which English is nearer to British than to American."""
_TAG = re.compile(r"[a-z]{2,3}(-[a-z0-9]{1,8})*")
_PARTS = {
    "ja": ("fugashi", "unidic_lite", "jaconv", "mojimoji"),
    "zh": ("jieba", "pypinyin", "cn2an", "ordered_set"),
}
"""Language → the modules of its G2P that an extra installs."""


def schema_pattern() -> str:
    """A JSON Schema pattern of the tags that `understood` accepts."""
    each = "|".join(_of_any_case(tag) for tag in (*_WHOLE, *_ISO_639_2))
    letters = "".join(name for name in _NAMES if len(name) == 1)
    return rf"^(?:(?:{each})(?:[-_][A-Za-z0-9]{{1,8}})*|[{letters}{letters.upper()}])$"


def _of_any_case(tag: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" for letter in tag)


def understood(tag: str) -> tuple[str, str | None]:
    """The language that is spoken for `tag`, and the text of a fallback if a part of the tag is not followed.

    A region without a reading of its own is read like its language: `es-MX` like `es`.

    Returns
    -------
    language : str
        One of `SPOKEN`.
    instead : str or None
        The text of the fallback; None if the tag is followed.

    Raises
    ------
    LanguageError
        No G2P here speaks this language.
    """
    canonical = tag.strip().lower().replace("_", "-")
    first, *rest = canonical.split("-")
    first = _ISO_639_2.get(first, first)
    if rest and (first, rest[0]) in _WRITTEN_IN:
        rest = rest[1:]
    found = _NAMES.get("-".join((first, *rest)))
    if found is not None:
        return found, None
    if _TAG.fullmatch(canonical) is None or first not in _WHOLE:
        raise LanguageError(
            f"There is no G2P for the language {tag!r}.",
            field="language",
            value=tag,
            allowed=", ".join(SPOKEN),
            mend="Any voice can read English: pass language='en-us'.",
        )
    found = "en-gb" if first == "en" and rest[0] in _BRITISH else _WHOLE[first]
    return found, f"{tag.strip()} is read as {found}: there is no reading of its own for it"


def resolve_language(tag: str) -> str:
    """The canonical tag of a language that can be spoken: lower case, `en` meaning `en-us`.

    Raises
    ------
    LanguageError
        No G2P here speaks this language.
    """
    return understood(tag)[0]


def why_not_read(language: str) -> str | None:
    """Why no text of a language, given by its canonical tag, can be read on this machine; None if it can be
    read. Imports no module of a G2P."""
    if language not in SPOKEN:
        return f"there is no G2P for {language}"
    lacking = [module for module in _PARTS.get(language, ()) if find_spec(module) is None]
    if language in _PARTS and not lacking and find_spec("misaki") is None:
        return f"{language} needs misaki: {MISAKI}"
    return f"{language} needs the extra kokoro-lab[{language}]: {lacking[0]} is missing" if lacking else None


def lacks_packages(name: str, tag: str, error: ImportError) -> LanguageError:
    """The error to raise if `error` came from importing the G2P of the language `tag`, called `name`."""
    return LanguageError(
        f"{name} needs packages that are not installed ({error.name}).",
        field="language",
        value=tag,
        mend=MISAKI if error.name == "misaki" else f"pip install 'kokoro-lab[{tag}]'",
    )


def english_of(*tags: str | None) -> str:
    """The kind of English in the first tag that names one, else American."""
    return next((tag for tag in tags if tag is not None and tag.startswith("en-")), "en-us")
