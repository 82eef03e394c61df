"""What a client of Wyoming does with the package's own client, as Home Assistant does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped

T = TypeVar("T")
TIMEOUT_S = 60


@dataclass
class Heard:
    """What was said until the end of a speech, or of the connection."""

    pcm: bytes = b""
    kinds: list[str] = field(default_factory=list)
    error: Error | None = None

    async def listen(self, client: AsyncTcpClient, until: str) -> Heard:
        while until not in self.kinds:
            event = await asyncio.wait_for(client.read_event(), TIMEOUT_S)
            if event is None:
                self.kinds.append("left")
                break
            if self.kinds[-1:] != [event.type]:
                self.kinds.append(event.type)
            if AudioStart.is_type(event.type):
                start = AudioStart.from_event(event)
                assert (start.rate, start.width, start.channels) == (24_000, 2, 1)
            elif AudioChunk.is_type(event.type):
                chunk = AudioChunk.from_event(event)
                assert chunk.timestamp == 1000 * len(self.pcm) // 48_000
                self.pcm += chunk.audio
            elif Error.is_type(event.type):
                self.error = Error.from_event(event)
        return self


def talk(port: int, work: Callable[[AsyncTcpClient], Awaitable[T]]) -> T:
    """What `work` comes to with a client of its own."""

    async def talking() -> T:
        async with AsyncTcpClient("127.0.0.1", port) as client:
            return await work(client)

    return asyncio.run(talking())


def whole(port: int, text: str, **fields: Any) -> Heard:
    async def work(client: AsyncTcpClient) -> Heard:
        await client.write_event(Synthesize(text, **fields).event())
        return await Heard().listen(client, AudioStop().event().type)

    return talk(port, work)


async def write(client: AsyncTcpClient, pieces: Iterable[str], **fields: Any) -> None:
    """Write a text as Home Assistant does, but for its end."""
    await client.write_event(SynthesizeStart(**fields).event())
    for each in pieces:
        await client.write_event(SynthesizeChunk(each).event())


async def end(client: AsyncTcpClient, text: str) -> None:
    """As Home Assistant does: for servers that know no pieces, it sends the whole of the text as well."""
    await client.write_event(Synthesize(text).event())
    await client.write_event(SynthesizeStop().event())


def live(port: int, pieces: list[str], **fields: Any) -> Heard:
    async def work(client: AsyncTcpClient) -> Heard:
        async def writing() -> None:
            await write(client, pieces, **fields)
            await end(client, "".join(pieces))

        heard, _ = await asyncio.gather(Heard().listen(client, SynthesizeStopped().event().type), writing())
        return heard

    return talk(port, work)


def answer(port: int, event: Event) -> Event | None:
    """The next event after this one."""

    async def work(client: AsyncTcpClient) -> Event | None:
        await client.write_event(event)
        return await asyncio.wait_for(client.read_event(), TIMEOUT_S)

    return talk(port, work)
