"""Which language a text is to be read in."""

from __future__ import annotations

from kokoro_lab.errors import LanguageError

SPOKEN = ("en-us", "en-gb")
"""Languages with a G2P here."""

_ALIASES = {"en": "en-us", "en-uk": "en-gb", "a": "en-us", "b": "en-gb"}


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
