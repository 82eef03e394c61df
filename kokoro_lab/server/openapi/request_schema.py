"""Adds to the JSON Schema of a speech request the rules that its pydantic model does not express.

The server refuses more than wrong types: unknown voices, fields that exclude each other. This module puts
such rules into `/openapi.json`. Rules that no schema can express (whether SSML is well-formed, whether a text
has anything to speak) are left to the errors.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kokoro_lab.config import VARIANTS
from kokoro_lab.containers import FORMATS
from kokoro_lab.g2p.lexicon_entries import (
    FLAGS,
    MAX_GRAPHEME_CHARS,
    MAX_PHONEME_SYMBOLS,
    REQUEST_ENTRIES,
    languages,
    sounds,
)
from kokoro_lab.g2p.vocab import symbols
from kokoro_lab.server.openapi.schemas import one_line
from kokoro_lab.server.requests.resume import FRAME_ID, TOKEN
from kokoro_lab.text.language import schema_pattern
from kokoro_lab.weights.store import voice_names
from kokoro_lab.weights.voices import MAX_BLEND, OPENAI_VOICES

if TYPE_CHECKING:
    from kokoro_lab.server.state import ServerState

Schema = dict[str, Any]

ALIASES = {"text": "input", "format": "response_format", "lang": "language", "lang_code": "language"}
"""Other clients' names for the same fields: Raycast's, and `lang_code` as Kokoro-FastAPI's send it."""

CLIENT = re.compile(r"[A-Za-z0-9._:-]{1,64}")
"""How a client may call itself."""
SPEED_IN_TEXT = r"^(0\.(2[5-9]|[3-9])[0-9]{0,7}|[1-3](\.[0-9]{1,9})?|4(\.0{1,9})?)$"
"""A pattern for a speed that is sent as text, within the range of speeds."""
OUR_PREFIX = "kokoro-"
"""A prefix that a variant's name in `model` may have."""

EXAMPLES: list[Schema] = json.loads(files(__package__).joinpath("examples.json").read_text("utf-8"))
_WEIGHT = r"(?:\([1-9][0-9]{0,3}(?:\.[0-9]{1,3})?\))?"


def anchored(pattern: re.Pattern[str]) -> str:
    """`pattern` for JSON Schema, which searches: anchored at both ends, and without group names."""
    return f"^{re.sub(r'[(][?]P<[a-z_]+>', '(', pattern.pattern)}$"


def describe(schema: Schema) -> None:
    """Add to the schema of `SpeechRequest` the rules of every server."""
    fields = schema["properties"]
    one_line(schema)
    fields["input"]["minLength"] = 1
    describe_voice(schema)
    _of_text(fields["language"], pattern=f"^$|{schema_pattern()}")  # empty: the voice's own
    _of_text(fields["client"], pattern=anchored(CLIENT))
    _of_text(fields["resume"], pattern=anchored(TOKEN))
    _of_text(fields["last_id"], pattern=anchored(FRAME_ID))
    endings = (suffix[1:] for names in FORMATS.values() for suffix in names.suffixes)
    fields["response_format"]["anyOf"] += [{"const": ending} for ending in endings if ending not in FORMATS]
    _also(fields["speed"], {"type": "string", "pattern": SPEED_IN_TEXT})
    _also(fields["sample_rate"], {"enum": [str(rate) for rate in fields["sample_rate"]["enum"]]})
    for field in fields.values():
        if field.get("default") is not None:  # null means that the field was not given
            _also(field, {"type": "null"})
    fields["lexicon"]["anyOf"] = [*_lexicons(), {"type": "null"}]
    for alias, ours in ALIASES.items():
        fields[alias] = {**fields[ours], "description": f"The same as `{ours}`"}
    schema["required"].remove("input")
    schema["oneOf"] = [{"required": ["input"]}, {"required": ["text"]}]
    schema["allOf"] = _together()
    schema["examples"] = EXAMPLES


def limit(schema: Schema, state: ServerState) -> None:
    """Add to the schema the limits of this server: the longest text, and the variant that is served."""
    fields = schema["properties"]
    for name in ("input", "text"):
        fields[name]["maxLength"] = state.settings.max_input_chars
    others = [variant for variant in VARIANTS if variant != state.engine.config.variant]
    others += [OUR_PREFIX + variant for variant in others]
    _of_text(fields["model"], **{"not": {"enum": others}})


def describe_voice(schema: Schema) -> None:
    """Add the voices to the schema of a body with a `voice`; an empty one means the server's default."""
    schema["properties"]["voice"]["anyOf"][0] = _voice("")


def describe_id(schema: Schema) -> None:
    """Add the voices to the schema of a body that names the voice in `id`."""
    schema["properties"]["id"] = _voice()


def _also(field: Schema, other: Schema) -> None:
    """Allow the type `other` for a field, too."""
    if "anyOf" not in field:
        about = ("description", "default", "title")
        own = {name: field.pop(name) for name in list(field) if name not in about}
        field["anyOf"] = [own]
    field["anyOf"].append(other)


def _of_text(field: Schema, **constraints: Any) -> None:
    (text,) = [kind for kind in field["anyOf"] if kind.get("type") == "string"]
    text.update(constraints)


def _voice(*more: str) -> Schema:
    names = [*voice_names(), *OPENAI_VOICES]
    part = f"(?:{'|'.join(names)}){_WEIGHT}"
    blend = f"^{part}(?:\\+{part}){{0,{MAX_BLEND - 1}}}$"
    return {"type": "string", "anyOf": [{"enum": [*names, *more]}, {"pattern": blend}]}


def _lexicons() -> list[Schema]:
    written = {"type": "string", "minLength": 1, "maxLength": MAX_GRAPHEME_CHARS}
    known = "".join(re.escape(symbol) for symbol in symbols())
    heard = "".join(re.escape(symbol) for symbol in sorted(sounds()))
    said = {
        "type": "string",
        "maxLength": MAX_PHONEME_SYMBOLS,
        "pattern": f"^[{known}]*[{heard}][{known}]*$",
    }
    entry = {
        "type": "object",
        "additionalProperties": False,
        "required": ["grapheme", "phoneme"],
        "properties": {
            "lang": {"enum": [*languages(), None]},
            "grapheme": written,
            "phoneme": said,
            "flags": {"type": ["array", "null"], "items": {"enum": list(FLAGS)}},
        },
    }
    return [
        {"type": "array", "maxItems": REQUEST_ENTRIES, "items": entry},
        {
            "type": "object",
            "maxProperties": REQUEST_ENTRIES,
            "propertyNames": written,
            "additionalProperties": said,
        },
    ]


def _together() -> list[Schema]:
    """Rules for fields that exclude or need another field.

    The three kinds of answers are listed side by side, and not as rules that exclude each other: tools that
    generate requests from this document multiply such rules out, and give up if there are many.
    """
    none: Schema = {"type": "null"}
    events: Schema = {"stream_format": {"const": "sse"}, "stream": {"enum": [True, None]}}
    bytes_alone: Schema = {"stream_format": {"enum": ["audio", None]}, "resume": none, "last_id": none}
    untimed: Schema = {**bytes_alone, "timestamps": {"enum": [False, None]}}
    file: Schema = {**bytes_alone, "stream": {"enum": [False, None]}}
    return [
        *({"not": {"required": [alias, ours]}} for alias, ours in ALIASES.items() if ours != "input"),
        {"not": {"required": ["lang", "lang_code"]}},
        {
            "anyOf": [
                {"required": ["stream_format"], "properties": events},
                {"properties": untimed},
                {"properties": file},
            ]
        },
    ]
