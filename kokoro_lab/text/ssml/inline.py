"""Plain text with the marks that users of Kokoro know: `[pause:1.5s]`, `[voice:af_sky]`, `[word](/wˈɜɹd/)`.

They mean what `break`, `voice` and `phoneme` mean in SSML. A plain text has no errors: a mark that cannot be
followed is read as it is written, and a fallback says so.
"""

from __future__ import annotations

import regex

from kokoro_lab.datatypes import Fallback
from kokoro_lab.errors import SsmlError
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.sanitise import Noted, refuse_binary
from kokoro_lab.text.ssml.document import DocumentBuilder, SsmlDocument
from kokoro_lab.text.ssml.grammar import Outside
from kokoro_lab.text.ssml.markup import Opening, SourcePosition

MARK = regex.compile(
    r"\[(?:pause:(?P<time>[^][\n]*)|voice:(?P<name>[^][\n]*))\]|\[(?P<said>[^][\n]+)\]\(/(?P<ph>[^()/\n]*)/\)"
)
_ELEMENTS = {"time": "break", "name": "voice", "ph": "phoneme"}


def parse_inline(source: str, language: str, noted: Noted, outside: Outside) -> SsmlDocument:
    """Read a plain text with inline marks; the parameters are those of `parse`.

    Raises
    ------
    TextError
        The text is not a string, or is binary.
    """
    refuse_binary(source)
    text = AlignedText.of(source)
    builder = DocumentBuilder(language, noted, outside, keeps_lines=True)
    builder.open(Opening("speak", {}, SourcePosition(0, 1, 1)))
    at = 0
    for match in MARK.finditer(source):
        start, end = match.span()
        if at < start:
            builder.say(text.cut(at, start))
        try:
            _follow(builder, text, match)
        except SsmlError as error:
            reason = error.message.partition(": ")[2]
            noted(Fallback("text", f"an inline mark is read as it is written: {reason}", start, end))
            builder.say(text.cut(start, end))
        at = end
    if at < len(source):
        builder.say(text.cut(at, len(source)))
    return builder.document()


def _follow(builder: DocumentBuilder, text: AlignedText, match: regex.Match[str]) -> None:
    attribute = next(name for name in _ELEMENTS if match[name] is not None)
    value = {attribute: match[attribute].strip()}
    builder.open(Opening(_ELEMENTS[attribute], value, SourcePosition(match.start(), 1, 1)))
    if attribute == "ph":
        builder.say(text.cut(*match.span("said")))
    if attribute != "name":
        builder.close()
    elif builder.elements[-2].name == "voice":  # a voice speaks until the next one
        del builder.elements[-2], builder.scopes[-2]
