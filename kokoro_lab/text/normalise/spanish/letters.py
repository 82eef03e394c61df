"""Letters by their names, and whether a run of letters can be read as a Spanish word instead."""

from __future__ import annotations

import re

_NAMES = (
    "a be ce de e efe ge hache i jota ka ele eme ene eñe o pe cu erre ese te u uve uve-doble equis ye zeta"
)
NAMES = {
    letter: name.replace("-", " ")
    for letter, name in zip("abcdefghijklmnñopqrstuvwxyz", _NAMES.split(), strict=True)
}
"""The names of the Academies' Ortografía of 2010, one a letter."""

_VOWELS = "aeiouáéíóúü"
_SYLLABLES = re.compile(
    rf"""(?:ps(?=[{_VOWELS}]))?
    (?:
        (?:[bcfgpkt]r|[bcfgpk]l|dr|ch|ll|qu(?=[eiéí])|[bcdfghjklmnñprstvxyzw])?
        (?:[{_VOWELS}]{{1,3}}|y(?![{_VOWELS}]))
        (?:[lnrszdmxcbpgtf](?![{_VOWELS}])|y(?![{_VOWELS}]))?
    )+
    (?:ns|(?<=[{_VOWELS}])[bkptfg])?$""",
    re.VERBOSE,
)


def spell(letters: str) -> str:
    """`FBI` as `efe be i`; what has no name of its own (an accent, another script) stays."""
    return " ".join(NAMES.get(each, each) for each in letters.casefold())


def is_sayable(word: str) -> bool:
    """Whether `word` falls into syllables that Spanish has: `OTAN` does, `FBI` and `ONG` do not."""
    return _SYLLABLES.match(word.casefold()) is not None
