"""What schemathesis cannot know of us: how SSML is written, and which refusals of a request that fits the
document are right, because no JSON Schema could forbid it.

Loaded by schemathesis; see `contract.toml`. Such a refusal is known by the request as well as by the answer,
so that a refusal of the same kind without such a cause is still a failure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import schemathesis
from schemathesis.openapi.checks import RejectedPositiveData

from kokoro_lab.g2p.lexicon_entries import REQUEST_BYTES
from kokoro_lab.text.sanitise import BINARY_COUNT

SSML_CHARACTERS = 100


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext, failure: Exception, case: Any, response: schemathesis.Response
) -> bool:
    """Whether it counts."""
    if not isinstance(failure, RejectedPositiveData) or case.operation.path != "/v1/audio/speech":
        return True
    error = response.json()["error"]
    if error["code"] == "unsupported_language" and "not installed" in error["message"]:
        return False  # a schema knows of no extras
    return not _beyond_a_schema(case.body, error["code"], error["param"])


@schemathesis.hook
def map_case(context: schemathesis.HookContext, case: Any) -> Any:
    """Make SSML of a text that is said to be SSML, which nothing drawn at random ever is."""
    body, right = case.body, case.meta.generation.mode.is_positive
    if right and isinstance(body, dict) and body.get("input_format") == "ssml":
        name = "input" if "input" in body else "text"
        words = "".join(character for character in body[name] if character.isalnum())
        case.body = {**body, name: f"<speak>{words[:SSML_CHARACTERS] or 'One.'}</speak>"}
    return case


def _beyond_a_schema(body: dict[str, Any], code: str, param: str | None) -> bool:
    text = body.get("input", body.get("text", ""))
    if code == "invalid_ssml":
        return body.get("input_format") == "ssml"
    if code == "invalid_text":
        return not _speakable(text)
    if code == "invalid_lexicon":
        return not _sound(body["lexicon"])
    if code == "invalid_parameter" and param == "last_id":
        return body.get("resume") is not None and body.get("last_id") is None  # it may come as a header
    return code == "stream_gone" and body.get("resume") is not None


def _speakable(text: str) -> bool:
    """Holds a letter or a digit, and few characters that cannot be read."""
    kinds = [unicodedata.category(character) for character in text]
    unreadable = sum(kind in ("Cc", "Cs", "Co", "Cn") for kind in kinds)
    return any(kind[0] in "LN" for kind in kinds) and unreadable <= BINARY_COUNT


def _sound(lexicon: Any) -> bool:
    """Each entry is of a word, none comes twice, and all are short enough together."""
    rows = (
        lexicon if isinstance(lexicon, list) else [{"grapheme": g, "phoneme": p} for g, p in lexicon.items()]
    )
    words = [_word(row["grapheme"]) for row in rows]
    size = len(str(lexicon).encode("utf-8", "surrogatepass"))
    plural = any("plural" in (row.get("flags") or ()) for row in rows)
    return all(map(_speakable, words)) and _distinct(words) and size <= REQUEST_BYTES and not plural


def _word(grapheme: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", grapheme)).strip().casefold()


def _distinct(words: Iterable[str]) -> bool:
    words = list(words)
    return len(set(words)) == len(words)
