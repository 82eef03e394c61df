"""`kokoro-lab wyoming`, as it is started by users, and the client of Home Assistant's protocol."""

from __future__ import annotations

import random
import signal
import socket
import time
import wave
from collections.abc import Iterator
from itertools import pairwise

import pytest
from wyoming.client import AsyncTcpClient
from wyoming.info import Describe, Info
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeVoice

from tests.installed.command import STEADY, Installed, Running
from tests.server.wyoming_client import Heard, answer, end, live, talk, whole, write

pytestmark = pytest.mark.test_all

TEXT = (
    "The kettle is on, and the window is open, though it is cold. Nobody in the house knows why that is so. "
    "It is late in the evening, and the street has been empty since the shops closed at nine o'clock."
)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Installed(tmp_path_factory.mktemp("wyoming")).started("wyoming", "--port", "0", **STEADY) as running:
        running.awaited(r"Warm after")
        yield running


@pytest.fixture
def port(started: Running) -> int:
    return int(started.awaited(r"Wyoming on 127\.0\.0\.1, port (\d+)")[1])


def said_by_speak(installed: Installed, text: str, *options: str) -> bytes:
    done = installed.run("speak", text, "--stream", "-o", "speech.wav", *options)
    assert done.returncode == 0, done.stderr
    with wave.open(str(installed.folder / "speech.wav")) as file:
        return file.readframes(file.getnframes())


def test_it_describes_its_voices(port: int) -> None:
    said = answer(port, Describe().event())
    assert said is not None
    (program,) = Info.from_event(said).tts
    assert program.supports_synthesize_streaming
    assert {"en-US", "en-GB", "es", "fr", "hi", "it", "pt-BR"} <= {
        tag for voice in program.voices for tag in voice.languages
    }


def test_whole_and_in_pieces_it_is_what_speak_writes(port: int, installed: Installed) -> None:
    expected = said_by_speak(installed, TEXT)
    assert whole(port, TEXT).pcm == expected
    chance = random.Random(1)
    for _ in range(3):
        cuts = sorted({0, len(TEXT), *chance.sample(range(len(TEXT)), 30)})
        assert live(port, [TEXT[start:stop] for start, stop in pairwise(cuts)]).pcm == expected


def test_a_voice_of_another_language(port: int, installed: Installed) -> None:
    expected = said_by_speak(installed, "El hervidor está puesto.", "--voice", "em_alex")
    assert whole(port, "El hervidor está puesto.", voice=SynthesizeVoice(name="em_alex")).pcm == expected
    assert len(whole(port, "El hervidor está puesto.", voice=SynthesizeVoice(language="es")).pcm) > 24_000


def test_the_first_words_are_heard_before_the_last_ones_are_written(port: int) -> None:
    async def work(client: AsyncTcpClient) -> Heard:
        await write(client, TEXT[:-1])
        heard = await Heard().listen(client, "audio-chunk")
        await client.write_event(SynthesizeChunk(TEXT[-1:]).event())
        await end(client, TEXT)
        return await heard.listen(client, "synthesize-stopped")

    assert talk(port, work).pcm == whole(port, TEXT).pcm


def test_garbage_and_unknown_voices_are_refused_and_others_are_served(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"is not JSON" in connection.makefile("rb").read()
    error = whole(port, "Hello.", voice=SynthesizeVoice(name="af_hart")).error
    assert error is not None
    assert "Did you mean one of af_heart" in error.text
    assert whole(port, "Hello.").error is None


def test_a_client_that_leaves_makes_room_for_others(port: int, started: Running) -> None:
    async def work(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize(TEXT * 20).event())
        await Heard().listen(client, "audio-chunk")

    for _ in range(4):  # more than may speak at a time
        talk(port, work)
    since_s = time.monotonic()
    assert whole(port, "Hello.").error is None
    assert time.monotonic() - since_s < 15
    assert started.written().count('"outcome": "cancelled"') >= 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(installed: Installed, number: signal.Signals) -> None:
    with installed.started("wyoming", "--port", "0") as running:
        port = int(running.awaited(r"Wyoming on 127\.0\.0\.1, port (\d+)")[1])
        running.awaited(r"Warm after")

        async def work(client: AsyncTcpClient) -> Heard:
            await client.write_event(Synthesize(TEXT).event())
            heard = await Heard().listen(client, "audio-chunk")
            running.process.send_signal(number)
            return await heard.listen(client, "audio-stop")

        heard = talk(port, work)
        assert heard.kinds[-1] == ("audio-stop" if number == signal.SIGTERM else "left")
        assert running.process.wait(40) == 0
        said = running.written()
    assert "Traceback" not in said
    assert "terminate called" not in said
