"""Which languages can be spoken, and by which names they may be asked for."""

from __future__ import annotations

from importlib.util import find_spec

from kokoro_lab.errors import LanguageError

SPOKEN = ("en-us", "en-gb", "es", "fr", "it", "pt-br", "hi", "ja")
"""Languages with a G2P here."""

_ALIASES = {
    "en": "en-us",
    "en-uk": "en-gb",
    "es-es": "es",
    "fr-fr": "fr",
    "it-it": "it",
    "pt": "pt-br",
    "hi-in": "hi",
    "ja-jp": "ja",
    # the letters that Kokoro's voices begin with
    "a": "en-us",
    "b": "en-gb",
    "e": "es",
    "f": "fr",
    "i": "it",
    "p": "pt-br",
    "h": "hi",
    "j": "ja",
}

_PARTS = {"ja": ("fugashi", "unidic_lite", "jaconv", "mojimoji")}
"""What a language's G2P is made of, where that is an extra of its own."""

ASKED = (*SPOKEN, *_ALIASES)
"""Every name of a language that is understood; in capitals or with `_`, too."""


def resolve_language(tag: str) -> str:
    """The canonical tag of a language that can be spoken: lower case, `en` meaning `en-us`.

    Raises
    ------
    LanguageError
        Nothing here speaks it.
    """
    canonical = tag.strip().lower().replace("_", "-")
    canonical = _ALIASES.get(canonical, canonical)
    if canonical not in SPOKEN:
        raise LanguageError(
            f"There is no G2P for the language {tag!r}.",
            field="language",
            value=tag,
            allowed=", ".join(SPOKEN),
            mend="Any voice can read English: pass language='en-us'.",
        )
    return canonical


def why_not_read(language: str) -> str | None:
    """Why no text of a language, by its canonical tag, can be read here; None if it can. Loads nothing."""
    if language not in SPOKEN:
        return f"there is no G2P for {language}"
    lacking = [module for module in _PARTS.get(language, ()) if find_spec(module) is None]
    return f"{language} needs the extra kokoro-lab[{language}]: {lacking[0]} is missing" if lacking else None


def english_of(*tags: str | None) -> str:
    """The English that is meant: of the first tag that is English, else American."""
    return next((tag for tag in tags if tag is not None and tag.startswith("en-")), "en-us")
