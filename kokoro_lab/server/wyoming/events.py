"""Wyoming's events as bytes: a line of JSON, then data in JSON, then a payload.

Version 1.10.2 of the package `wyoming` is the specification. Lines and payloads have a largest length here,
and bytes that are no event are refused with an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kokoro_lab._version import __version__
from kokoro_lab.errors import ParameterError
from kokoro_lab.server.health.status import described_voice
from kokoro_lab.server.requests.json_body import object_of
from kokoro_lab.weights.voices import reading_voices

VERSION = "1.10.2"
"""Version of the protocol."""
_OURS = ("kokoro-lab", "https://github.com/kokoro-lab/kokoro-lab")
_KOKORO = ("hexgrad", "https://huggingface.co/hexgrad/Kokoro-82M")


def event_bytes(kind: str, data: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """An event as it is sent."""
    body = json.dumps(data, ensure_ascii=False).encode()
    head = {"type": kind, "version": VERSION, "data_length": len(body), "payload_length": len(payload)}
    return json.dumps(head).encode() + b"\n" + body + payload


def taken_event(held: bytearray, most_bytes: int) -> tuple[str, dict[str, Any]] | None:
    """Take the first event out of `held`; returns its kind and data, or None while it is incomplete.

    Parameters
    ----------
    held : bytearray
        Bytes that the client has sent and that have not been taken.
    most_bytes : int
        The longest line, data or payload.

    Raises
    ------
    ParameterError
        The bytes are no event, or it is too long. The start of the next event is then unknown.
    """
    at = held.find(b"\n")
    if at < 0 and len(held) <= most_bytes:
        return None
    head = object_of(bytes(held[:at]), "An event of Wyoming") if at >= 0 else {}
    kind, data = head.get("type"), head.get("data") or {}
    lengths = [head.get(name) or 0 for name in ("data_length", "payload_length")]
    bounded = all(type(length) is int and 0 <= length <= most_bytes for length in lengths)
    if not (isinstance(kind, str) and isinstance(data, dict) and bounded):
        allowed = f"a line of JSON: type, data, data_length, payload_length; {most_bytes} bytes of each"
        raise ParameterError("This is no event of Wyoming, or it is too long.", allowed=allowed)
    start, end = at + 1, at + 1 + lengths[0]
    if len(held) < end + lengths[1]:
        return None
    if lengths[0]:
        data |= object_of(bytes(held[start:end]), "The data of an event")
    del held[: end + lengths[1]]
    return kind, data


def info() -> dict[str, Any]:
    """The answer to `describe`: the voices whose own language can be read here."""
    program = _artifact("kokoro-lab", "Kokoro-82M, a small speech model", __version__, *_OURS)
    voices = [_voice(name) for name in reading_voices()]
    return {"tts": [{**program, "voices": voices, "supports_synthesize_streaming": True}]}


def _voice(name: str) -> dict[str, Any]:
    about = described_voice(name)
    language, dash, region = about["language"].partition("-")
    return {
        **_artifact(name, about["name"], "1.0", *_KOKORO),
        "languages": [language + dash + region.upper()],
    }


def _artifact(name: str, description: str, version: str, maker: str, url: str) -> dict[str, Any]:
    made = {"name": maker, "url": url}
    return {
        "name": name,
        "description": description,
        "version": version,
        "attribution": made,
        "installed": True,
    }
