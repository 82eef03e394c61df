"""Entries of a pronunciation lexicon, checked when they are read: from a file's rows, or from a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

import regex

from kokoro_lab.datatypes import LexiconEntry
from kokoro_lab.errors import LexiconError, TextError
from kokoro_lab.g2p.vocab import symbols
from kokoro_lab.text.language import SPOKEN
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.tables import names

FIELDS = ("lang", "grapheme", "phoneme", "flags")
FLAGS = ("case", "plural")
ANY = "*"
"""The language tag of an entry for all languages."""
MAX_GRAPHEME_CHARS = 100
MAX_PHONEME_SYMBOLS = 200
REQUEST_ENTRIES = 100
REQUEST_BYTES = 8_000

_WRITTEN = names(__package__)["symbol written otherwise"]
"""Character that is often typed instead of a symbol of the vocabulary → that symbol."""
_IPA = names(__package__)["IPA"]
"""Several letters of the IPA → the one symbol that the model has for their sound."""
_NO_SOUND = frozenset("ˈˌːʰʲ")
_SHAPES_PROSODY = regex.compile(r"[\s.,;:!?…—\"'“”()\-]*")


def checked(raw: Any, where: str, *, field: str, lang: str | None = None) -> LexiconEntry:
    """The entry that `raw` describes, once its fields are checked.

    Parameters
    ----------
    raw : Mapping of str to Any
        A mapping with the keys `FIELDS`. `flags` is optional: a list, or words separated by spaces.
    where : str
        The entry's place, for the error: `words.tsv, line 3`.
    field : str
        The file or the request's field.
    lang : str, optional
        The language of an entry that names none; without it, one must be named.

    Raises
    ------
    LexiconError
        A field is missing, unknown, of a wrong type or has a value that is not allowed.
    """

    def refuse(message: str, name: str, value: Any, allowed: str | None = None) -> LexiconError:
        return LexiconError(f"{where}: {message}", field=f"{field} {name}", value=value, allowed=allowed)

    if not isinstance(raw, Mapping):
        message = f"an entry must be an object, not {type(raw).__name__}."
        raise refuse(message, "entry", type(raw).__name__, f"an object with {', '.join(FIELDS)}")
    for name in raw:
        if name not in FIELDS:
            raise refuse(f"there is no field {_shown(name)}.", "entry", _shown(name), ", ".join(FIELDS))
    found = {}
    for name in FIELDS[:3]:
        value = raw.get(name)
        if value is None and name == "lang" and lang:
            value = lang
        if value is None or value == "":
            raise refuse(f"the {name} is missing.", name, None)
        if not isinstance(value, str):
            raise refuse(
                f"the {name} must be a text, not {type(value).__name__}.", name, type(value).__name__
            )
        found[name] = value
    lang = _language(found["lang"])
    if lang is None:
        value = _shown(found["lang"])
        raise refuse(f"nothing here speaks {value}.", "lang", value, ", ".join(languages()))
    try:
        grapheme = " ".join(sanitise(found["grapheme"]).text.split())
    except TextError as error:
        raise refuse(error.message, "grapheme", None) from None
    if not 0 < len(grapheme) <= MAX_GRAPHEME_CHARS:
        message = f"the grapheme has {len(grapheme)} characters."
        raise refuse(message, "grapheme", len(grapheme), f"1 to {MAX_GRAPHEME_CHARS}")
    if _SHAPES_PROSODY.fullmatch(grapheme):
        message = (
            f"the grapheme {_shown(grapheme)} holds marks of punctuation alone, which shape the prosody."
        )
        raise refuse(message, "grapheme", grapheme)
    phoneme = _phonemes(found["phoneme"].strip(), refuse)
    flags = _flags(raw.get("flags"), refuse)
    if "plural" in flags and not lang.startswith(("en", ANY)):
        raise refuse("a plural -s is known in English alone.", "flags", "plural", "case")
    return LexiconEntry(lang, grapheme, phoneme, flags)


def from_ipa(phonemes: str) -> str:
    """Convert `phonemes`, which are IPA, to the symbols of the model.

    Raises
    ------
    LexiconError
        A symbol is not in the vocabulary (the error may say what to write instead), no symbol is a sound, or
        there are more than `MAX_PHONEME_SYMBOLS`.
    """
    for written, symbol in _IPA.items():
        phonemes = phonemes.replace(written, symbol)

    def refuse(message: str, name: str, value: Any, allowed: str | None = None) -> LexiconError:
        return LexiconError(message, field=name, value=value, allowed=allowed)

    return _phonemes(phonemes, refuse)


def request_entries(raw: Any) -> tuple[LexiconEntry, ...]:
    """The lexicon that comes with a request.

    Parameters
    ----------
    raw : Mapping, or iterable of Mapping or LexiconEntry
        `{grapheme: phoneme}`, or entries, whose `lang` may be left out. A tuple of `LexiconEntry` has been
        read from a file, which has bounds of its own.

    Raises
    ------
    LexiconError
        An entry is wrong, there are too many entries, or they exceed `REQUEST_BYTES`.
    """
    if raw is None or raw == ():
        return ()
    if isinstance(raw, tuple) and all(isinstance(entry, LexiconEntry) for entry in raw):
        return tuple(checked(asdict(e), where, field="lexicon") for where, e in _called(raw))
    if isinstance(raw, Mapping):
        raw = [{"grapheme": grapheme, "phoneme": phoneme} for grapheme, phoneme in _bounded(raw).items()]
    elif not isinstance(raw, (list, tuple)):
        raise LexiconError(
            f"The lexicon of a request cannot be of the type {type(raw).__name__}.",
            field="lexicon",
            value=type(raw).__name__,
            allowed='a list of entries, or {"grapheme": "phoneme"}',
        )
    rows = [asdict(e) if isinstance(e, LexiconEntry) else e for e in _bounded(raw)]
    size = sum(_bytes(row) for row in rows)
    if size > REQUEST_BYTES:
        raise _too_large(f"{size} bytes", f"up to {REQUEST_BYTES} bytes")
    entries = [checked(row, where, field="lexicon", lang=ANY) for where, row in _called(rows)]
    refuse_duplicates(_called(entries), field="lexicon")
    return tuple(entries)


def refuse_duplicates(entries: Iterable[tuple[str, LexiconEntry]], *, field: str) -> None:
    """Raise a LexiconError if two of the entries, each given with its name for the error, have the same
    key."""
    seen: dict[tuple[str, str, bool], str] = {}
    for where, entry in entries:
        by_case = "case" in entry.flags
        key = (entry.lang, entry.grapheme if by_case else entry.grapheme.casefold(), by_case)
        if key in seen:
            raise LexiconError(
                f"{where}: {_shown(entry.grapheme)} has an entry already: {seen[key]}.",
                field=f"{field} grapheme",
                value=_shown(entry.grapheme),
                mend="Keep one of them, or tell them apart by the flag `case` or the language.",
            )
        seen[key] = where


def _called(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Each entry, after the name by which error messages call it."""
    return ((f"Entry {number} of the lexicon", item) for number, item in enumerate(items, 1))


def _bounded(raw: Any) -> Any:
    if len(raw) > REQUEST_ENTRIES:
        raise _too_large(f"{len(raw)} entries", f"up to {REQUEST_ENTRIES} entries")
    return raw


def _too_large(size: str, allowed: str) -> LexiconError:
    return LexiconError(
        f"The lexicon of the request has {size}.",
        field="lexicon",
        value=size,
        allowed=allowed,
        mend="A larger one goes into a file: see KOKORO_PROJECT_LEXICON.",
    )


def _bytes(row: Any) -> int:
    values = row.values() if isinstance(row, Mapping) else ()
    return sum(len(str(value).encode("utf-8", "surrogatepass")) for value in values)


@cache
def languages() -> tuple[str, ...]:
    """The allowed values of an entry's `lang`."""
    return (ANY, *sorted({tag.split("-")[0] for tag in SPOKEN} | set(SPOKEN)))


@cache
def sounds() -> frozenset[str]:
    """The symbols that sound: the phonemes of an entry must have at least one."""
    return frozenset(s for s in symbols() if s.isalpha() and s not in _NO_SOUND)


def _language(tag: str) -> str | None:
    canonical = tag.strip().lower().replace("_", "-")
    return canonical if canonical in languages() else None


def _phonemes(phonemes: str, refuse: Any) -> str:
    table = symbols()
    for symbol in phonemes:
        if symbol not in table:
            hint = f"; write {_WRITTEN[symbol]}" if symbol in _WRITTEN else ""
            message = f"the symbol {symbol!r} (U+{ord(symbol):04X}) is not in the vocabulary{hint}."
            raise refuse(message, "phoneme", symbol, "".join(table).strip())
    if not any(symbol in sounds() for symbol in phonemes):
        raise refuse("the phonemes hold no sound.", "phoneme", _shown(phonemes))
    if len(phonemes) > MAX_PHONEME_SYMBOLS:
        message = f"the phonemes are {len(phonemes)} symbols."
        raise refuse(message, "phoneme", len(phonemes), f"up to {MAX_PHONEME_SYMBOLS}")
    return phonemes


def _flags(raw: Any, refuse: Any) -> tuple[str, ...]:
    words = raw.split() if isinstance(raw, str) else raw if raw is not None else ()
    if not isinstance(words, (list, tuple)):
        raise refuse(f"flags cannot be of the type {type(raw).__name__}.", "flags", None, ", ".join(FLAGS))
    for word in words:
        if word not in FLAGS:
            raise refuse(f"there is no flag {_shown(word)}.", "flags", _shown(word), ", ".join(FLAGS))
    return tuple(sorted(set(words)))


def _shown(value: Any) -> str:
    """A value, shortened for an error."""
    return repr(value if isinstance(value, str) else type(value).__name__)[:40]
