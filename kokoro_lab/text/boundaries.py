"""Where a speaker pauses: at the ends of sentences, and within a sentence at marks and between phrases.

`sentencex` (Wikimedia) knows the abbreviations of many languages. Where it ends a sentence wrongly, the parts
are joined again.

Phrase borders are found as speech synthesisers have long found them: before a function word that follows a
content word (Liberman & Church 1992, "chinks 'n' chunks"). The best places are before function words that
open a clause, then before prepositions, then before `of`, `to`, the auxiliary after a subject and the subject
of a clause without a conjunction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import regex
from sentencex import get_sentence_boundaries

from kokoro_lab.datatypes import Word
from kokoro_lab.text.detect import LATIN
from kokoro_lab.text.tables import any_of, words

_WORDS = words(__package__)


def _before_number(language: str) -> Any:
    """A pattern for a text that ends with an abbreviation after which a number usually follows, such as
    `p.`"""
    found = any_of(_WORDS[f"{language} before a number"])
    not_behind_one = _WORDS.get(f"{language} before a number but not behind one")
    if not_behind_one:
        found = rf"(?:{found}|(?<!\d ){any_of(not_behind_one)})"
    return regex.compile(rf"(?<!\w){found}\.$", regex.IGNORECASE if language == "en" else 0)


_ABBREVIATION = {language: _before_number(language) for language in LATIN}
_ABBREVIATION |= dict.fromkeys(
    ("ja", "zh"), regex.compile(r"(?<![A-Za-z])(?:pp?|[Nn]o|[Vv]ol|[Ff]ig|ver)\.$")
)
_TITLE = {
    language: regex.compile(rf"(?<!\w){any_of(_WORDS[f'{language} before a name'])}\.$")
    for language in (*LATIN, "hi")
}
_HINDI_UNIT = regex.compile(rf"\d\s?{any_of(_WORDS['hi behind a number'])}\.$")
_INITIAL = regex.compile(
    r"(?:^|[\s(\"“'’])(?:(?P<letter>(?<!\p{L}|^|[.!?…] )\p{Lu} )?"
    r"(?P<before>\p{L}{2,}(?: ?:)?|\p{L})\.?[ ])?(?P<initial>\p{Lu})\.$"
)
_VOWELS = {"A": "Ah", "E": "Eh", "I": "Ì", "O": "Oh"}
"""Letter that is also a word → how it is written so that it is read with a stress."""
_NAME = regex.compile(r"(?:\p{Lu}\. ?){0,3}(\p{Lu}\p{Ll}+|\p{Lu}'\p{Lu}|(?<=\. ?)$)")
_NUMBER_OF_ITEM = regex.compile(r"[.!?…][\"”')]*\s+(\d{1,2}\.)$")
_AHEAD = 12
"""Number of characters before a border that are examined; behind it, twice as many are."""
_DOT_OF_WORD = regex.compile(r"(?:^|\s)\.$")
"""A point that begins a word, as in `.NET`."""
_GLUED = regex.compile(r"[.．][-–/\p{Lu}\p{Nd}]|[!?][-_/@#%&+=]")
"""A point right before a letter, a digit or a stroke is inside a name, an address or a number; so is another
mark right before a sign."""
_SHORT_WORD = regex.compile(r"(?<!\p{L})(?:\p{L}{1,5}|approx)\.$")
_ANSWER = regex.compile(r"No\.\s+(?=[¿¡]*\p{Lu}(?!\p{Lu}|\b[.)]))")
_NUMBER = regex.compile(r"\d{1,3}\.")
_ROMAN_NUMBER = regex.compile(r"(?:^|\s[–—] )(?:[VX]|[IVX]{2,5})\.$")
"""The number of a movement or of a heading before its name: `– VI. Adagio`."""
_IN_A_PART = r"(?<!(?i:\b(?:in|see|of|from|to)\ (?:ch|chap|vol|sect|pp?))\.\ )"
PRONOUN = (
    rf"(?:I(?:'|\ {any_of(_WORDS['en verb of the present behind I'])}\b)"
    rf"|{_IN_A_PART}I\ {any_of(_WORDS['en verb behind I'])}\b)"
)
"""A pattern for the pronoun `I` behind an abbreviation, where it could be a Roman number: `in ch. I think`
has the pronoun, `in ch. I described` the number."""
_COUNTS = regex.compile(r"\(?(?:[~≈]?[$€£]?\d|[IVXLC]+(?![\w'’])|[ivxlc]+\b|[B-DF-HJ-NP-Z](?![\w'’]))")
_PRONOUN = regex.compile(PRONOUN)
_NOTE = regex.compile(
    r"""(?:[⁰¹²³⁴⁵⁶⁷⁸⁹]+|<sup>\[?\d{1,3}\]?</sup>|\[\^\w{1,20}\](?!:)|(?<!\s)(?:[*_~]+(?![\p{L}\p{N}])|</\w{1,10}>))+\s*""",
    regex.VERBOSE,
)
"""The sign of a note, or the end of what is emphasised."""
TIME_ZONE = any_of(_WORDS["en time zone"])
_GOES_ON_IN_ENGLISH = (
    (  # `8 p.m. EST` and `8 p.m. Saturday`, but not `8 p.m. Saturday is a holiday.`
        regex.compile(r"\d ?[ap]\.m\.$"),
        regex.compile(
            rf"(?:{TIME_ZONE}|Eastern|Central|Mountain|Pacific)(?!\w)|{any_of(_WORDS['en month'])}\b\.? \d"
            rf"|{any_of(_WORDS['en day'])}\b\.?(?! (?:\p{{Ll}}+s|was|were|will|had|came|went)\b)"
        ),
    ),
    (  # `2 hrs. 30 mins.`
        regex.compile(r"\d ?(?:hrs?|mins?|ft|lbs?)\.$"),
        regex.compile(r"\d{1,2} ?(?:mins?|secs?|in|oz)\b"),
    ),
)
"""Patterns for what stands before and behind a point that ends no sentence."""
_SUM = regex.compile(r"[=×÷≤≥≠≈](?!=)")
"""A sign with which no sentence begins: `5! = 120`."""
_QUOTED = regex.compile(r"[」』]$")
_GOES_ON = regex.compile(r"(?:と|って|など)(?!ても)")

_SPANISH = "es"
_LEADS_ON = regex.compile(rf"(?<![\p{{L}}\d]){any_of(_WORDS['es within a sentence'])}\.[ ]*\Z")
_LEADS_TO_NUMBER = regex.compile(rf"(?<![\p{{L}}\d])(?i:{any_of(_WORDS['es before any number'])})\.[ ]*\Z")
_ANY_NUMBER = regex.compile(r"[ ]*(?:\d|[IVXLC]+\b)")
_CONTINUES = regex.compile(r"[ ]*(?:[ºª°]|\p{Ll}|[-–][ ]?\d)|[ ]*C\.(?<=\b[ad]\.[ ]*C\.)")
"""A small letter, an ordinal's sign, the end of a range, the `C.` of `a. C.`: no sentence starts so."""
_LETTER_ENDS = regex.compile(r"(?<!\p{L})\p{L}\.\Z")

_LETTER_AND_SENTENCE = regex.compile(
    rf"\b(?:{any_of(_WORDS['en before a letter'])} \p{{Lu}}"
    r"|U\.S|U\.K|U\.N|E\.U|D\.C|U\.S\.A|L\.A|N\.Y\.C|[ap]\.m)\.\s+"
    rf"(?!\p{{Lu}}\.)(?={any_of(_WORDS['en begins a sentence'])}[ '.!,]"
    r"|(?<=\b(?:to|in|from|within|across|outside|of) the [^ ]+ )"
    rf"{any_of(_WORDS['en sold'])} (?:over|under|above|below) [$€£]?\d)"
    rf"|(?<![\p{{L}}.])\p{{L}}{{2,5}}\.\s+(?={PRONOUN})"
    rf"|\b{any_of(_WORDS['en before an answer'])} no\.\s+"
    r"(?=I (?!of|and|or|in|to|on|is|for|from|by|with|which|that)\p{Ll})"
    rf"|\bno\.\s+(?={any_of(_WORDS['en begins a sentence behind no'])}[ ',])"
)

MARK, CLAUSE, PHRASE, WEAK, NONE = 4, 3, 2, 1, 0
"""How well a pause fits at a border. From best to worst: after a mark; before a clause; before a
prepositional phrase; before `of`, `to`, an auxiliary or a subject pronoun; nowhere."""

CLAUSE_MARKS = frozenset(",;:—…")
_OPENERS, _PREPOSITIONS, _AUXILIARIES, _SUBJECTS = (
    _WORDS[f"en {kind}"] for kind in ("clause opener", "preposition", "auxiliary", "subject")
)
_CLINGING = _OPENERS | _PREPOSITIONS | _AUXILIARIES | _WORDS["en clinging"]
"""Words after which nobody pauses, although a function word may follow."""
_PRONOUNS = _SUBJECTS | _WORDS["en pronoun"]
"""Pronouns, which as a subject are too short to be followed by a pause."""
_OPEN_WEAKLY = _SUBJECTS | {"of", "to"}


def sentence_ranges(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Half-open ranges of the sentences of `text`, in order. Only white space lies between them.

    Parameters
    ----------
    text : str
        A paragraph.
    language : str
        A canonical tag.
    """
    code = language.split("-")[0]
    ranges = _with_notes(_ranges(text, code), text)
    if code == "en":
        return _parted(ranges, text)
    return _rejoined(ranges, text) if code == _SPANISH else ranges


def _with_notes(ranges: Iterable[tuple[int, int]], text: str) -> Iterator[tuple[int, int]]:
    """`ranges`, in which a footnote sign or the end of emphasis after a sentence becomes part of that
    sentence."""
    at = 0
    for start, end in ranges:
        note = _NOTE.match(text, end)
        start, at = max(start, at), note.end() if note else end
        if start < at:
            yield start, at


def _parted(ranges: Iterable[tuple[int, int]], text: str) -> Iterator[tuple[int, int]]:
    """`ranges`, in which two sentences are separated if the splitter took the letter between them for an
    initial."""
    for start, end in ranges:
        for match in _LETTER_AND_SENTENCE.finditer(text, start, end):
            yield start, match.end()
            start = match.end()
        yield start, end


def _ranges(text: str, code: str) -> Iterator[tuple[int, int]]:
    start: int | None = None
    found = [part for each in get_sentence_boundaries(code, text) for part in _parts_of(text, each)]
    for (first, end), following in zip(found, [*found[1:], None], strict=True):
        start = first if start is None else start
        said = text[start:end].rstrip()
        behind = text[start + len(said) : start + len(said) + 2 * _AHEAD]
        rest = behind.lstrip()
        if following is not None and "\n" not in behind[: len(behind) - len(rest)]:
            glued = behind == rest and (_DOT_OF_WORD.search(said) or _GLUED.search(said[-1:] + rest[:1]))
            if glued or _goes_on(said, rest, code):
                continue
            item = _NUMBER_OF_ITEM.search(said)
            if item and not _abbreviated(said[: item.start(1)], code):  # the number of what follows
                yield start, start + item.start(1)
                start += item.start(1)
                continue
        yield start, end
        start = None


def _parts_of(text: str, found: dict[str, Any]) -> list[tuple[int, int]]:
    """A sentence's range, or two if it begins with an answer (`No.`) that the splitter took for an
    abbreviation."""
    start, end = found["start_index"], found["end_index"]
    answer = _ANSWER.match(text, start, end)
    return [(start, answer.end()), (answer.end(), end)] if answer else [(start, end)]


def _abbreviated(said: str, code: str) -> bool:
    """Whether the text ends with an abbreviation that a number follows, such as `p.`"""
    return code in _ABBREVIATION and bool(_ABBREVIATION[code].search(said.rstrip()[-_AHEAD:]))


def _goes_on(said: str, rest: str, code: str) -> bool:
    tail = said[-_AHEAD:]
    if _NUMBER.fullmatch(said) or (
        _COUNTS.match(rest)
        and not (code == "en" and _PRONOUN.match(f"{tail} {rest}", len(tail) + 1))
        and _abbreviated(said, code)
    ):
        return True
    if code == "en" and rest[:1].isupper() and rest[1:2].islower() and _ROMAN_NUMBER.search(said):
        return True
    if (rest[:1].isupper() or code == "hi") and code in _TITLE and _TITLE[code].search(tail):
        return True
    if is_initial(said, rest, code):
        return True
    if code == "en" and any(p.search(tail) and q.match(rest) for p, q in _GOES_ON_IN_ENGLISH):
        return True
    if code == "hi" and rest and _HINDI_UNIT.search(tail):
        return True
    if rest[:1] in ",;:&ºª" or _SUM.match(rest) or (rest[:1].islower() and _SHORT_WORD.search(tail)):
        return True  # an abbreviation that is in no list
    return bool(_QUOTED.search(tail) and _GOES_ON.match(rest))


def is_initial(said: str, rest: str, code: str) -> bool:
    """Whether the text ends with the first letter of a name that follows: `di S. Freud`, not `vitamina C.`

    Letters that are Roman numerals belong to a name before them: `Carlo V.` After a noun or a verb, a letter
    may also name a thing (`il lato B.`). There it is taken for an initial only if it is an S (`S. Pietro`),
    or if the word before it names a person or is often followed by one: `lo dice G. Verdi`.
    """
    if f"{code} not before an initial" not in _WORDS:
        return False
    found, name = _INITIAL.search(said[-2 * _AHEAD :]), _NAME.match(rest)
    function_words = _WORDS[f"{code} function word"]
    if not found or not name or name[1].casefold() in function_words or found["letter"]:
        return False
    before, letter = (found["before"] or "").rstrip(" :"), found["initial"]
    numeral = letter in "IVX" and (not before or (before[0].isupper() and len(before) > 1))
    if is_label(before, code) or numeral:
        return False
    alone = not before and not said[: said.rindex(letter)].rstrip().endswith(":")
    leads = alone or before[:1].isupper() or before.casefold() in function_words or letter == "S"
    people = _WORDS[f"{code} before a name"] | _WORDS[f"{code} before an initial"]
    return leads or before in people


def initial(match: regex.Match[str], code: str) -> str | None:
    """What is read for a letter and its point if they are the initial of a name: the letter without its
    point. None if they are no initial, or if the point stays.

    A letter that is also a word (`di A. Bravo`) would be read as that word, so it is written as it sounds, or
    keeps its point.
    """
    letter, end = match.group()[0], match.end()
    rest = match.string[end : end + 2 * _AHEAD].lstrip()
    said = match.string[max(0, end - 2 * _AHEAD) : end]
    is_word = letter.casefold() in _WORDS[f"{code} function word"]
    if not is_initial(said, rest, code):
        return None
    return _VOWELS.get(letter) if is_word else letter


def is_label(before: str, code: str) -> bool:
    """Whether a letter after the word `before` names a thing: `vitamina C`."""
    return before.casefold() in _WORDS[f"{code} not before an initial"]


def _rejoined(ranges: Iterable[tuple[int, int]], text: str) -> Iterator[tuple[int, int]]:
    """`ranges`, in which parts of one sentence are joined: this module knows more abbreviations than the
    splitter."""
    held: tuple[int, int] | None = None
    for start, end in ranges:
        if held and _is_one(text, held[1], held[0]):
            held = (held[0], end)
            continue
        if held:
            yield held
        held = (start, end)
    if held:
        yield held


def _is_one(text: str, border: int, start: int) -> bool:
    if "\n" in text[max(start, border - 2) : border]:  # line ends are handled in `sentences`
        return False
    behind = max(start, border - _AHEAD)
    glued = not text[border - 1].isspace() and _LETTER_ENDS.search(text[max(0, border - 3) : border])
    leads_to_number = _ANY_NUMBER.match(text, border) and _LEADS_TO_NUMBER.search(text, behind, border)
    return bool(
        glued or leads_to_number or _CONTINUES.match(text, border) or _LEADS_ON.search(text, behind, border)
    )


def ends_clause(word: Word) -> bool:
    """Whether a mark after the word divides clauses."""
    return word.phonemes[-1:] in CLAUSE_MARKS


def border(before: Word, after: Word) -> int:
    """How well a pause fits between two words of a sentence.

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
    if last in _CLINGING:
        return NONE
    if following in _OPENERS:
        return CLAUSE
    if following in _PREPOSITIONS:
        return PHRASE
    weak = following in _OPEN_WEAKLY or (following in _AUXILIARIES and last not in _PRONOUNS)
    return WEAK if weak else NONE


def _other_border(last: str, following: str, language: str) -> int:
    """The border between two words of another language: in Romance languages before a function word, as in
    English; in Japanese and Hindi after a particle."""
    particles, openers, prepositions = (
        _WORDS.get(f"{language} {kind}", frozenset()) for kind in ("particle", "clause opener", "preposition")
    )
    if particles:
        return PHRASE if last in particles and following not in particles else NONE
    if last in openers or last in prepositions:
        return NONE
    if following in openers:
        return CLAUSE
    return PHRASE if following in prepositions else NONE


def borders(words: Sequence[Word]) -> list[int]:
    """The `border` after each word but the last."""
    return [border(before, after) for before, after in pairwise(words)]
