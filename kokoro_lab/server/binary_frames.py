"""Frames of audio as binary messages: a head of 16 bytes, then audio.

| bytes | what (little-endian) |
|---|---|
| 0 | version, 1 |
| 1 | flags: 1 where more of this chunk follows in the next message |
| 2–3 | length of the head, 16: skip so many, and later versions can be read |
| 4–7 | segment id |
| 8–11 | chunk id, counts up by one |
| 12–15 | when the chunk is heard, in ms from the start of the stream |
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kokoro_lab.server.speech_events import AudioBytes

VERSION = 1
MORE = 1
HEAD = struct.Struct("<BBHIII")
MESSAGE_BYTES = 16_384
"""The longest message: small enough that a stop is heeded between two of them."""


def messages_of(frame: AudioBytes) -> Iterator[bytes]:
    """The messages, `MESSAGE_BYTES` at most each, that a frame is sent as."""
    room = MESSAGE_BYTES - HEAD.size
    for at in range(0, len(frame.data), room):
        flags = MORE if at + room < len(frame.data) else 0
        head = HEAD.pack(
            VERSION, flags, HEAD.size, frame.segment_id, frame.chunk_id, round(1000 * frame.start_s)
        )
        yield head + frame.data[at : at + room]
