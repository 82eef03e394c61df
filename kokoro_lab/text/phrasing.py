"""Where a speaker would pause inside a sentence: at marks, and between phrases.

Phrase borders are found as speech synthesisers have long found them: before a function word that
follows a content word (Liberman & Church 1992, "chinks 'n' chunks"). Of the function words, those
that open a clause are the better places, then prepositions, then `of`, `to`, the auxiliary behind a
subject and the subject of a bare clause.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kokoro_lab.datatypes import Word

MARK, CLAUSE, PHRASE, WEAK, NONE = 4, 3, 2, 1, 0
"""How good a place to pause: behind a mark, before a clause, before a prepositional phrase, before `of`,
`to`, an auxiliary or a subject pronoun, nowhere."""

CLAUSE_MARKS = frozenset(",;:—…")

_CLAUSE_OPENERS = """
and but or nor yet because although though while whereas when whenever where wherever if unless until till
since which who whose
"""
_PREPOSITIONS = """
that as than with without within for from in into inside outside on onto upon at by through throughout
during between among amongst against about above below beneath under over across along around behind before
after beyond beside towards toward despite except instead
"""
_AUXILIARIES = """
am is are was were be been being do does did has have had will would shall should can could may might must
"""
CLAUSE_OPENERS, PREPOSITIONS, AUXILIARIES = (
    frozenset(words.split()) for words in (_CLAUSE_OPENERS, _PREPOSITIONS, _AUXILIARIES)
)
CLINGING = CLAUSE_OPENERS | PREPOSITIONS | AUXILIARIES | {"of", "to", "not", "so", "more", "most", "i"}
"""Words behind which nobody pauses, although a function word may follow."""
SUBJECTS = frozenset(("he", "she", "we", "they", "i", "there"))
PRONOUNS = SUBJECTS | {"it", "you", "this", "these", "those"}
"""Too short to be a subject that is followed by a pause."""

_OPENERS = {
    "es": "y e o pero sino aunque porque pues cuando mientras donde si que quien cual como así",
    "fr": "et ou mais donc car parce quand lorsque puisque tandis où si qui que quoique dont comme",
    "it": "e ed o ma però perché poiché quando mentre dove se che chi come anche",
    "pt": "e ou mas porém porque pois quando enquanto onde se que quem como embora",
}
_OTHER_PREPOSITIONS = {
    "es": "a con contra desde durante en entre hacia hasta para por según sin sobre tras",
    "fr": "à avec chez contre dans depuis devant derrière en entre par pendant pour sans sous sur vers",
    "it": "a con contro da dal dalla dopo durante fra in nel nella per senza sopra su sul sulla tra verso",
    "pt": "a ao à com contra desde durante em no na nos nas entre para pelo pela por sem sobre até",
}
_PARTICLES = {
    "ja": "は が を に で と も へ から まで ので のに けど けれど ば て たら ながら し",
    "hi": "ने को से में पर तक कि और लेकिन तो",
}
OPENERS, OTHER_PREPOSITIONS, PARTICLES = (
    {language: frozenset(words.split()) for language, words in table.items()}
    for table in (_OPENERS, _OTHER_PREPOSITIONS, _PARTICLES)
)
_NO_WORDS: frozenset[str] = frozenset()


def ends_clause(word: Word) -> bool:
    """Whether a mark behind the word divides clauses."""
    return word.phonemes[-1:] in CLAUSE_MARKS


def border(before: Word, after: Word) -> int:
    """How good a place between two words of a sentence is to pause at.

    Returns
    -------
    int
        `MARK` (best), `CLAUSE`, `PHRASE`, `WEAK` or `NONE`.
    """
    if ends_clause(before):
        return MARK
    language = before.language[:2]
    if language != "en":
        return _other_border(before.text.casefold(), after.text.casefold(), language)
    last, following = (word.text.casefold().strip("\"'“”‘’()") for word in (before, after))
    if last in CLINGING:
        return NONE
    if following in CLAUSE_OPENERS:
        return CLAUSE
    if following in PREPOSITIONS:
        return PHRASE
    weak = following in {"of", "to"} | SUBJECTS or (following in AUXILIARIES and last not in PRONOUNS)
    return WEAK if weak else NONE


def _other_border(last: str, following: str, language: str) -> int:
    """In Romance languages before a function word, as in English; in Japanese and Hindi behind a particle."""
    if language in PARTICLES:
        return PHRASE if last in PARTICLES[language] and following not in PARTICLES[language] else NONE
    openers, prepositions = OPENERS.get(language, _NO_WORDS), OTHER_PREPOSITIONS.get(language, _NO_WORDS)
    if last in openers or last in prepositions:
        return NONE
    if following in openers:
        return CLAUSE
    return PHRASE if following in prepositions else NONE


def borders(words: Sequence[Word]) -> list[int]:
    """`border` behind each word but the last."""
    return [border(before, after) for before, after in pairwise(words)]
