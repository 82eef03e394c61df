"""The protocol between the player and its clients: JSON messages, with PCM in them or beside them.

It is the protocol of the Raycast client's own daemon (`raycast/bin/audio-daemon.js` and
`raycast/src/utils/tts/streaming/audio-playback-daemon.ts` of darianrosebrook/kokoro-onnx-raycast-api, read in
November 2026), so that either side can be exchanged. Found there:

- WebSocket on port 8081, any path; `GET /health` answers `{"status": "healthy", "timestamp", "uptime",
  "version", "audioProcessor": {"isPlaying", "isPaused", "bufferUtilization", …}, "clients"}`. The client asks
  for it first and starts a daemon of its own unless the answer is 200.
- Every message is `{"type", "timestamp", "data"}`; `timestamp` is in ms since 1970 (`Date.now()`).
- From the client: `audio_chunk` with `data: {"chunk", "format", "sequence"}`; `control` with `data:
  {"action": "play" | "pause" | "resume" | "stop" | "configure" | "end_stream", "params"}`; `heartbeat`;
  `end_stream`.
  `chunk` is base64 or `{"type": "Buffer", "data": […]}`, but the client itself gives `JSON.stringify` a
  Uint8Array, which makes `{"0": 12, "1": 255, …}`. Fragments are as HTTP brought them: they may end within a
  sample. `format` is `{"format", "sampleRate", "channels", "bitDepth", …}` and often missing. `sequence`
  counts from 0 and begins anew after `stop`.
- To the client: `status` (on connecting, after each chunk and each `control`) with `data: {"state",
  "bufferUtilization", "audioPosition", "performance"}`, `completed` with the same and `state: "completed"`,
  `heartbeat` with `{"status": "ok"}` each second and in answer to one, `error` with `{"message"}`.
- Once it has ended its stream, the client takes a `status` of `idle` with an empty buffer for `completed`. So
  this player never sends `idle` while a sample is still to be heard.

This player differs: `completed` comes when the last sample was heard, not when it was handed over; `pause`
pauses; `stop` drops what was not played; `end_stream` ends the stream, as a message or as a control action,
and never cuts it off. In addition, a binary message holds PCM; `flow_control` with `{"pause": true}` asks a
sender to wait, with false to continue; `fallback` says that the system's player plays the rest; and `data` of
a status holds the figures of `playback.stream.PlayerStatus`.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import pydantic_core

from kokoro_lab.containers.pcm import BYTES_A_SAMPLE
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import KokoroLabError, ParameterError
from kokoro_lab.playback.pcm_input import require_format
from kokoro_lab.playback.stream import PlayerStatus

PRE_BUFFER_MAX_MS = 10_000

Action = Literal["play", "pause", "resume", "stop", "configure", "end_stream"]
TYPES = ("audio_chunk", "end_stream", "control", "heartbeat", "status")


@dataclass(frozen=True, slots=True)
class Audio:
    """A fragment of PCM, which may end anywhere, and its number (`sequence`), if the client gives one."""

    fragment: bytes
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class PlayerCommand:
    """A command and its parameters. `heartbeat` and `status` only ask for an answer."""

    action: Action | Literal["heartbeat", "status"]
    params: dict[str, Any]


def read_message(message: str | bytes) -> Audio | PlayerCommand:
    """Parse a client's message.

    Raises
    ------
    ParameterError
        The message is unknown, or holds speech that the player cannot play.
    """
    if isinstance(message, bytes):
        return Audio(message)
    said = _object(message)
    kind, data = said.get("type"), said.get("data")
    data = data if isinstance(data, dict) else {}
    if kind == "audio_chunk":
        _check_format(data.get("format"))
        sequence = data.get("sequence")
        return Audio(_bytes_of(data.get("chunk")), sequence if isinstance(sequence, int) else None)
    if kind == "end_stream":
        return PlayerCommand("end_stream", {})
    if kind == "heartbeat" or kind == "status":
        return PlayerCommand(kind, {})
    if kind != "control":
        raise _unknown("type", kind, TYPES)
    action: Any = data.get("action")
    if action not in get_args(Action):
        raise _unknown("action", action, get_args(Action))
    params = data.get("params")
    return PlayerCommand(action, params if isinstance(params, dict) else {})


def configured(params: dict[str, Any]) -> tuple[float | Literal["auto"] | None, float | None]:
    """The pre-buffer in seconds (or "auto": it is learnt) and the volume that `configure` asks for; None
    changes nothing.

    `bufferSize`, which the Raycast client sends, has no effect: this player always buffers more.

    Raises
    ------
    ParameterError
        A parameter is unknown, or a format cannot be played.
    """
    known = ("format", "bufferSize", "pre_buffer_ms", "volume")
    for name in params:
        if name not in known:
            raise _unknown("params", name, known)
    _check_format(params.get("format"))
    held_ms, volume = params.get("pre_buffer_ms"), params.get("volume")
    if held_ms is not None and held_ms != "auto":
        held_ms = _number("pre_buffer_ms", held_ms, PRE_BUFFER_MAX_MS) / 1000
    return held_ms, None if volume is None else _number("volume", volume, 1)


def message(kind: str, data: dict[str, Any]) -> str:
    """A message of that type, stamped with the time of day."""
    stamp = round(1000 * time.time())
    return json.dumps({"type": kind, "timestamp": stamp, "data": data}, ensure_ascii=False)


def status_data(status: PlayerStatus, state: str | None = None) -> dict[str, Any]:
    """A status for clients: fields by the Raycast client's names, then ours.

    Parameters
    ----------
    state : str, optional
        Replaces the player's own state.
    """
    utilisation = status.buffered_s / status.capacity_s
    position_bytes = status.played_samples * BYTES_A_SAMPLE
    played_s = status.played_samples / SAMPLE_RATE_HZ
    figures = asdict(status)
    return {
        **figures,
        "state": state or status.state,
        "played_s": played_s,
        "bufferUtilization": utilisation,
        "audioPosition": position_bytes,
        "performance": {
            "isPlaying": status.state not in ("idle", "paused"),
            "isPaused": status.state == "paused",
            "bufferUtilization": utilisation,
            "stats": {
                "bytesProcessed": status.received_samples * BYTES_A_SAMPLE,
                "audioPosition": position_bytes,
                "underruns": status.underruns,
            },
        },
    }


def error_data(error: KokoroLabError) -> dict[str, Any]:
    """The data of an `error` message: what is wrong, in words and by field."""
    return {
        "message": str(error),
        "code": error.code,
        "field": error.field,
        "allowed": error.allowed,
        "mend": error.mend,
    }


def _object(message: str) -> dict[str, Any]:
    try:
        said = pydantic_core.from_json(message, allow_inf_nan=False)
    except ValueError as error:
        raise ParameterError(f"The message is not JSON: {error}.", allowed="a JSON object") from None
    if not isinstance(said, dict):
        raise ParameterError("The message is JSON, but not an object.", allowed="a JSON object")
    return said


def _bytes_of(chunk: Any) -> bytes:
    """Bytes from any of the forms in which JavaScript writes them."""
    try:
        if isinstance(chunk, str):
            return base64.b64decode(chunk, validate=True)
        if isinstance(chunk, dict) and chunk.get("type") == "Buffer":
            chunk = chunk.get("data")
        elif isinstance(chunk, dict) and list(chunk) == [str(i) for i in range(len(chunk))]:
            chunk = list(chunk.values())
        if isinstance(chunk, list):
            return bytes(chunk)
    except (binascii.Error, ValueError, TypeError):
        pass
    raise ParameterError(
        "The chunk holds no bytes.",
        field="chunk",
        allowed="base64, or a Buffer or Uint8Array as JSON.stringify writes it",
        mend="Or send PCM as a binary message.",
    )


def _check_format(given: Any) -> None:
    if not isinstance(given, dict):
        return
    found = [given.get("sampleRate", SAMPLE_RATE_HZ), given.get("channels", 1), given.get("bitDepth", 16)]
    require_format(*found)


def _number(name: str, value: Any, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise ParameterError(
            f"{name} is out of range.", field=name, value=str(value)[:40], allowed=f"0 to {most:g}"
        )
    return float(value)


def _unknown(field: str, value: Any, known: tuple[str, ...]) -> ParameterError:
    return ParameterError(
        f"A player knows no such {field}.", field=field, value=str(value)[:40], allowed=", ".join(known)
    )
