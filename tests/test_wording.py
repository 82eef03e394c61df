"""Plain English: phrases of one author's making are refused, and every module says first what is in it.

A rule is added where a reader stumbled: the pattern, and the field's own words for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation import PAGES, RECIPES, ROOT

HISTORY = {"decisions.md"}
"""Pages that record what was thought at a time."""
REFUSED = {
    r"\bby turns\b": "interleaved (measurements), or in turn",
    r"\b(be|is|was|are|were) gone on with\b|\bgo on with (it|a stream)\b": "resumed",
    r"\bnobody (loses|has been shown)\b|\bshown to lose\b": "non-inferior",
    r"\b(are|is|agrees?|like .{1,40}) to \d+ dB\b|\d dB from\b": "SNR above N dB against what",
    r"\b[Tt]hat (it|there) (is|was) none\b|\bof that there is none\b|\bthere is none of\b": "say what is",
    r"(?<=[.:] )Of that, |— Of that\b": "name what it is a part of",
    r"\bin the middle of \d": "median of",
    r"\bmust hear \d": "must be answered",
    r"\b[Ww]hat (each|a|the) \w+ may be off\b": "how far it may differ",
    r"\bstill speaks is told\b|(?<=[.:`eld] )Told (in|of|what|the|how|when|each)\b": "called with",
    r"\bWere (that|this) in\b": "if that happened",
    r"\bafter its begin\b": "from its start",
    r"\b[Tt]he same of (a|an|the|every|all)\b": "say it again, of what",
    r"\bcollector of garbage\b": "garbage collector",
    r"\b[Dd]etector of languages\b": "language detector",
    r"\bfor want of\b": "for lack of",
    r"\b(whence|lest|hitherto|wherein)\b": "plain words",
    r"\bto be had\b|\b(can|could|cannot|may) be had\b": "available",
    r"\bso many are borne\b|\bshould bear\b": "capacity, allowed",
    r"\bput to the test\b": "tested",
    r"(?<=[.:\"`] )[Cc]ounts that cannot be\b": "impossible counts",
}
"""Pattern → what to write instead."""
IN_CODE = {
    r"\b[Ww]hoever\b": "name who",
    r"\b(its|the|his|their|of one|close the) books\b": "account",
    r"\bhas? (its|their) say\b": "decides, are tried",
    r"\bsays? of (itself|themselves)\b": "facts",
    r"\bOnly for its name\b": "for type checking alone",
}
"""The same, refused in docstrings, comments and messages of the package alone."""
FOR_USERS = {
    r"\bwith commas\b": "separated by commas",
    r"\banother G2P\b": "the next level of G2P",
    r"\btime to first words\b": "time to first audio",
    r"\b(AVX2|for tests|of their own|a language|voice and length|other speeds) alone\b": "only",
    r"(?<=\| )Where [^|:.]+: (while|if|when)\b": "one condition in a sentence",
}
"""The same, refused in pages and in the help of commands."""
IN_DOCSTRINGS = {
    r"\bp\d\d by the\b|\b(sum|median|mean|time|seconds) by the \w+'s\b": "divided by",
    r"\b(sentence|segment|word|mark|text|unit|number|window)s? behind (it|them|the|a|each)\b": "after",
    r"\bone behind (another|the other)\b": "one after another",
    r"\b(over|of|by) what there (is|was)\b|\bwhat it has(?=[.,;])": "name the thing",
    r"\bgone on\b|\btaken as it comes\b|\bat so many\b": "continued, as it is, at this number",
    r"(^|[.:] )Of (each|those|these|them|that)\b": "say what of each first",
    r"(^|[.:] )(It is not|It cannot|It does not)\.$": "name what is not",
    r"(^|[.:] )(Of both|Of all|Which one|By name)\.$": "name what it is",
}
"""The same, refused in docstrings of the package alone, one paragraph at a time."""
IN_RECIPES = (
    "kokoro_lab/graphs/",
    "kokoro_lab/model/static_vocoder.py",
    "kokoro_lab/server/http/websocket.py",
)
"""Files whose docstrings are part of the digests of cached graphs, or of a published answer."""
MODULES = sorted(path for top in ("kokoro_lab", "scripts") for path in (ROOT / top).rglob("*.py"))


def running(text: str) -> str:
    """A text without its line breaks and the marks of comments."""
    return re.sub(r"\s*\n\s*(?:#:? )?", " ", text)


def refusals(text: str, rules: dict[str, str]) -> Iterator[str]:
    """What a text says that it should not, with what to say instead."""
    for pattern, instead in rules.items():
        for match in re.finditer(pattern, text):
            around = text[max(0, match.start() - 40) : match.end() + 40]
            yield f"{match.group()!r}: {instead} (… {around} …)"


@pytest.mark.parametrize(
    "path", [path for path in (*PAGES, RECIPES) if path.name not in HISTORY], ids=lambda path: path.name
)
def test_a_page_is_written_in_the_words_of_the_field(path: Path) -> None:
    assert not list(refusals(running(path.read_text("utf-8")), REFUSED | FOR_USERS))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "kokoro_lab/commands").glob("*.py")), ids=lambda path: path.name
)
def test_the_help_is_written_as_the_pages_are(path: Path) -> None:
    assert not list(refusals(running(path.read_text("utf-8")), FOR_USERS))


def test_docstrings_comments_and_messages_are_written_in_the_words_of_the_field() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {refusal}"
        for path in MODULES
        for refusal in refusals(running(path.read_text("utf-8")), REFUSED | IN_CODE)
    ]
    assert not found, "\n".join(found)


def paragraphs(tree: ast.Module) -> Iterator[str]:
    """The paragraphs of all docstrings and of the strings under constants, without their line breaks."""
    for node in ast.walk(tree):
        for child in (
            getattr(node, "body", None) or [] if not isinstance(node, ast.Lambda | ast.IfExp) else []
        ):
            match child:
                case ast.Expr(ast.Constant(str(said))):
                    blocks = re.split(r"\n\s*\n|\n\s*-{3,}\n|\n\s*[\w, *]+ : [^\n]+\n", said)
                    yield from (running(block.strip()) for block in blocks)


def test_docstrings_name_a_thing_before_they_point_at_it() -> None:
    found = [
        f"{name}: {refusal}"
        for path in MODULES
        if not (name := path.relative_to(ROOT).as_posix()).startswith(IN_RECIPES)
        for said in paragraphs(ast.parse(path.read_text("utf-8")))
        for refusal in refusals(said, IN_DOCSTRINGS)
    ]
    assert not found, "\n".join(found)


ENTRY = re.compile(r"\s*[\w*]+(, [\w*]+)* : ")
"""How an entry of a section begins: names, then a type."""


def swallowed(said: str) -> Iterator[str]:
    """The lines of a docstring into which the name of a parameter or the title of a section was run, so that
    numpydoc does not see it."""
    lines = said.splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        if " : " in line and not ENTRY.match(line):
            yield line.strip()
        if re.fullmatch(r"\s*-{3,}", line) and len(before.strip()) != len(line.strip()):
            yield before.strip()


def test_each_parameter_and_each_title_of_a_section_has_a_line_of_its_own() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for line in swallowed(ast.get_docstring(node) or "")
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "said",
    [
        "A text.\n\nParameters\n----------\nphases : int\n    1, 2 or 4. dilation : int Distance of taps.",
        "A text.\n\nParameters\n----------\nsay : callable, optional\n    Called. Raises\n------\nOSError",
    ],
)
def test_a_parameter_or_a_title_in_the_line_before_it_is_refused(said: str) -> None:
    assert len(list(swallowed(said))) == 1


def test_every_module_says_in_a_line_what_is_in_it() -> None:
    firsts = {
        path: (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        for path in MODULES
    }
    faults = [
        f"{path.relative_to(ROOT)}: {said!r}"
        for path, said in firsts.items()
        if not said.endswith((".", "?", ":")) or re.match(r"(It|They|This|Of|The same)\b", said)
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "sentence",
    [
        "That it was none before is no error.",
        "Were that in the start of the next one, both would wait for the same lock for ever.",
        "What each layer may be off, `21_precision_pareto` shows.",
        "From one excitation its samples are to 125 dB.",
        "They speak like the engine's own windows to 107 dB.",
        "over 100 dB from ONNX Runtime's",
        "it costs half and nobody has been shown to lose by it",
        "sends 50 more requests, which must hear 429 within 50 ms",
        "what then still speaks is told, and ends",
        "Seconds after its begin in which a stream that broke may be gone on with",
        "two or three words, spoken as slowly (in the middle of 423 borders)",
        "load_s : float — Of that, load_engine.",
        "The same of a body in which the voice is the `id`.",
        "Ours and the reference are timed by turns.",
    ],
)
def test_a_sentence_that_nobody_but_its_author_understood_is_refused(sentence: str) -> None:
    assert list(refusals(sentence, REFUSED))


@pytest.mark.parametrize(
    "sentence",
    [
        "Numbers of listeners, with commas.",
        "after 50 ms another G2P reads the sentence",
        "more and more listeners, their time to first words",
        "If it has a language alone, the server takes the voice of the settings.",
        "| Where windows cannot be held: while a new stream has less than 0.2 s, the cores wait |",
    ],
)
def test_a_phrase_that_a_reader_of_the_pages_stumbled_over_is_refused(sentence: str) -> None:
    assert list(refusals(sentence, FOR_USERS))


@pytest.mark.parametrize(
    "sentence",
    [
        "`ttfa_to_alone_ratio` is p95 by the median of one listener alone.",
        "Silence that is left in the segment behind the mark.",
        "Contexts are spoken one behind another.",
        "Of each chunk: when it came, and how long it is.",
        "It is not.",
        "Of both.",
    ],
)
def test_a_docstring_that_points_at_a_thing_without_a_name_is_refused(sentence: str) -> None:
    assert list(refusals(sentence, IN_DOCSTRINGS))
