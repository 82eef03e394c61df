"""Makes any string safe to analyse without losing a letter of any language.

The result has canonical composition, one kind of line break, one kind of space, straight apostrophes (misaki
drops the "n't" of a curly one), and no invisible characters except where they carry meaning: joiners inside
Indic and Arabic words, and inside emoji sequences. Combining marks in a row are limited to as many as a
writing system needs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise

import regex

from kokoro_lab.datatypes import Fallback
from kokoro_lab.errors import TextError
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.letters import undressed

BINARY_SHARE, BINARY_COUNT = 0.1, 8
"""A text with more control and undecodable characters than both of these is taken for a file."""

MOST_MARKS = 8
"""The most combining marks in a row that are kept. Vietnamese and Thai need 2, the IPA 3, Hindi and Hebrew
with all its points 5, Burmese 6, and the longest stacks of Tibetan 8. Unicode's Stream-Safe Format (UAX 15)
allows 30, for any text that may ever be written. Thousands take minutes to put in order and to read, and
nobody says them."""

_UNREADABLE = regex.compile(r"[^\P{Cc}\t\n\r\f\v\x85]|\p{Cs}|\p{Co}|\p{Cn}|�")

# Characters on either side of a joiner, variation selector or tag that belongs to an emoji
_PICTURE = r"[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Regional_Indicator}\u20e3\ufe0f#*0-9]"
# Scripts in which a (non-)joiner changes how a word is written and read
_JOINING = (
    r"[\p{Arabic}\p{Devanagari}\p{Bengali}\p{Tamil}\p{Telugu}\p{Kannada}\p{Malayalam}"
    r"\p{Gujarati}\p{Gurmukhi}\p{Sinhala}]"
)

_HALF, _CLUSTER = regex.compile(r"\p{Cs}"), regex.compile(r"\X")
_KEPT = r"\g<0>"
"""The replacement for parts that are matched but stay: joiners that carry meaning."""
_RULES: tuple[tuple[str, str], ...] = (
    (r"\r\n|[\r\v\f\x85\u2028\u2029]", "\n"),
    (r"[\u00ad\ufffe]\n", ""),
    (r"[\t\p{Zs}--[ ]]", " "),
    (r"[‘’‛ʼ＇`´]", "'"),
    (r"[„‟«]", "“"),
    (r"»", "”"),
    (r"[‐‑−]", "-"),
    (r"[―⸺⸻]", "—"),
    (r"\.{3,}", "…"),
    (rf"(?<={_PICTURE})[\u200d\ufe0f]|(?<=[\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007f]", _KEPT),
    (rf"(?<={_JOINING})[\u200c\u200d](?={_JOINING})", _KEPT),
    (r"[\p{Cc}\p{Cf}\p{Cs}\ufe00-\ufe0f--\n]", ""),
)
LONG_CHARS = 1000
"""A text without a safe place within this length is cut between two letters and cleaned part by part. A text
that is still being written needs this, so all texts are treated alike."""
_WIDE = r"\p{Hiragana}\p{Katakana}\p{Han}"
SAFE = rf"\s(?=[\p{{L}}\p{{N}}\"'“(\[¿¡$€£*#-])|[{_WIDE}ー。、！？「」](?=[{_WIDE}])"
"""A safe place: text before it is cleaned in the same way whatever follows, and it is not inside white
space."""
_SAFE = regex.compile(SAFE)
_INSIDE = regex.compile(r"[\p{L}--[\u1100-\u11ff]](?=[\p{L}--[\u1100-\u11ff]])", regex.V1)
_PLAIN = regex.compile(r"[ -_a-~\n]*+")
"""Printable ASCII without grave accents: but for rows of points, there is nothing to clean."""
_CROWD = regex.compile(rf"\p{{M}}{{{MOST_MARKS + 1},}}")
_RULE = regex.compile("|".join(f"({pattern})" for pattern, _ in _RULES), regex.V1)


Noted = Callable[[Fallback], None]


def sanitise(text: str, noted: Noted = lambda _: None) -> AlignedText:
    """Clean `text`; offsets into the original are kept.

    Parameters
    ----------
    text : str
    noted : callable
        Called for each omission: combining marks beyond `MOST_MARKS` in a row, and halves of surrogate pairs.

    Returns
    -------
    AlignedText
        NFC, with `\\n` as the only line break and the plain space as the only other white space.
        May be empty: whether that is an error is for the caller to say.

    Raises
    ------
    TextError
        `text` is not a string, or looks like the bytes of a file.
    """
    refuse_binary(text)
    if _PLAIN.fullmatch(text) and "..." not in text:
        return AlignedText.of(text)
    whole = AlignedText.of(text)
    ends = [0, *cuts(text), len(text)]
    return AlignedText.joined([clean(whole.cut(i, j), noted) for i, j in pairwise(ends)])


def cuts(text: str) -> Iterator[int]:
    """Where a growing text may be cut if it has no safe place within `LONG_CHARS`."""
    start = 0
    while start < len(text):
        safe = _SAFE.search(text, start)
        end = safe.end() if safe else len(text)
        while end - start > LONG_CHARS and (found := _INSIDE.search(text, start + LONG_CHARS, end)):
            start = found.end()
            yield start
        start = end


def refuse_binary(text: str) -> None:
    """Refuse a value that is no text.

    Raises
    ------
    TextError
        `text` is not a string, or looks like the bytes of a file.
    """
    if not isinstance(text, str):
        raise TextError(
            f"The text must be a string, not {type(text).__name__}.",
            field="input",
            value=type(text).__name__,
            mend="Decode bytes as UTF-8 first.",
        )
    unreadable = 0 if _PLAIN.fullmatch(text) else sum(1 for _ in _UNREADABLE.finditer(text))
    if unreadable > max(BINARY_COUNT, BINARY_SHARE * len(text)):
        raise TextError(
            f"The text looks like binary data: {unreadable} of {len(text)} characters cannot be read.",
            field="input",
            value=f"{len(text)} characters",
            mend="Send text, decoded as UTF-8.",
        )


def clean(text: AlignedText, noted: Noted = lambda _: None) -> AlignedText:
    """Like `sanitise`, for a text whose offsets already point into another original."""
    if text.text.isascii():
        return _ruled(text)
    for half in _HALF.finditer(text.text):
        noted(Fallback("text", "half of a surrogate pair left out", *text.span(*half.span())))
    # Before composition, since ordering combining marks takes the square of their number; and again, for
    # marks that only invisible characters had divided
    return _thinned(undressed(_ruled(_composed(_thinned(text, noted)))), noted)


def _thinned(aligned: AlignedText, noted: Noted) -> AlignedText:
    """At most `MOST_MARKS` combining marks in a row; the offsets of those left out go to the last one
    kept."""

    def edits() -> Iterator[tuple[int, int, str]]:
        for match in _CROWD.finditer(aligned.text):
            last = match.start() + MOST_MARKS - 1
            left_out = match.end() - last - 1
            reason = f"{left_out} combining marks left out: {MOST_MARKS} in a row are read"
            noted(Fallback("text", reason, *aligned.span(last + 1, match.end())))
            yield last, match.end(), aligned.text[last]

    return aligned.rewrite(edits())


def _ruled(aligned: AlignedText) -> AlignedText:
    return aligned.sub(_RULE, lambda found: found.expand(_RULES[found.lastindex - 1][1]))


def _composed(aligned: AlignedText) -> AlignedText:
    """NFC, cluster by cluster: nothing composes across the border of a grapheme cluster."""
    if unicodedata.is_normalized("NFC", aligned.text):
        return aligned
    return aligned.sub(_CLUSTER, lambda found: unicodedata.normalize("NFC", found.group()))
