"""The repository's inputs: texts that gates and tests speak."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from kokoro_lab.errors import MissingExtra, ParameterError
from kokoro_lab.extras import require
from kokoro_lab.provenance import repository_root
from kokoro_lab.text.han import CHINESE, has_han
from kokoro_lab.weights.voices import english_of

T = TypeVar("T")
log = logging.getLogger(__name__)

HELD_OUT = 500
"""Number of lines at the end of a corpus that are held out: nothing is fitted on them. Variants of the model,
and the predictor of statistics, are judged on them."""
MANDARIN_VOICE = "zf_xiaoxiao"
"""The voice of the Mandarin sentence that gates read besides the English ones."""


@dataclass(frozen=True, slots=True)
class FixtureText:
    """One text, with its name and the kind of problem that the text tests.

    `reader` names the only voice that reads the text; if it is empty, all voices of the run read it.
    """

    id: str
    kind: str
    text: str
    reader: str = ""


def require_known(what: str, name: str, known: Collection[str], field: str, **said: str) -> None:
    """Refuse a name that is not among `known`; `said` are further fields of the error.

    Raises
    ------
    ParameterError
        The name is not known.
    """
    if name not in known:
        fields = {"field": field, "value": name, "allowed": ", ".join(known), **said}
        raise ParameterError(f"There is no {what} {name!r}.", **fields)


def load_texts(name: str = "english", *, limit: int = 0) -> list[FixtureText]:
    """Texts of `fixtures/texts/<name>.jsonl`: `limit` of them, at even distances; 0 takes all."""
    return spread([FixtureText(**row) for row in load_rows(name)], limit)


def spread(items: Sequence[T], limit: int = 0) -> list[T]:
    """`limit` of the items, at even distances over all of them; 0 takes all."""
    if not limit or limit >= len(items):
        return list(items)
    return [items[i * len(items) // limit] for i in range(limit)]


def mandarin_texts() -> list[FixtureText]:
    """One sentence for `MANDARIN_VOICE`; where Mandarin is not installed, an empty list and a warning."""
    try:
        require("zh", "jieba", "pypinyin")
    except MissingExtra as error:
        log.warning("No Mandarin is judged: it is not installed. %s", error)
        return []
    return [replace(text, reader=MANDARIN_VOICE) for text in load_texts("held_out_zh", limit=1)]


def read_by(texts: Sequence[FixtureText], voices: Sequence[str]) -> list[tuple[FixtureText, str]]:
    """The pairs of text and voice: every voice reads every text, except a text with a reader of its own."""
    everybody = [(text, voice) for voice in voices for text in texts if not text.reader]
    return everybody + [(text, text.reader) for text in texts if text.reader]


def read_in(text: str, voice: str) -> str:
    """The language in which gates have `voice` read a text: Chinese if a Mandarin voice reads Chinese
    characters, otherwise English."""
    return CHINESE if voice.startswith("z") and has_han(text) else english_of(voice)


def load_rows(name: str) -> list[dict[str, Any]]:
    """The objects of `fixtures/texts/<name>.jsonl`, with whatever fields they have."""
    path = repository_root() / "fixtures" / "texts" / f"{name}.jsonl"
    require_known("file of texts", name, sorted(p.stem for p in path.parent.glob("*.jsonl")), "texts")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def read_corpus(path: Path) -> list[FixtureText]:
    """The lines of a text file that are not empty, in their order, named by their numbers.

    Raises
    ------
    ParameterError
        There is no such file, or it has no line.
    """
    written = path.read_text("utf-8") if path.is_file() else ""
    lines = [(number, line.strip()) for number, line in enumerate(written.splitlines(), 1)]
    texts = [FixtureText(f"line {number}", "prose", line) for number, line in lines if line]
    if not texts:
        raise ParameterError(
            f"There is no line of text in {path}.",
            field="corpus",
            value=str(path),
            mend="Name a text file with one sentence a line, from the folder that the notebook runs in.",
        )
    return texts


def held_out(corpus: Path) -> list[FixtureText]:
    """The last `HELD_OUT` lines of a corpus, as `read_corpus` reads them."""
    return read_corpus(corpus)[-HELD_OUT:]


def texts_of(corpus: str, limit: int = 0) -> list[FixtureText]:
    """The texts of a gate: the fixtures or, if a corpus is named, its held-out lines.

    `limit` of them are taken, at even distances; 0 takes all.
    """
    return spread(held_out(Path(corpus)) if corpus else load_texts(), limit)
