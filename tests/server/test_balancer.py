"""Two servers behind HAProxy, as the docs configure it: stopped and killed in turn, and no word is lost."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import cycle
from pathlib import Path

import psutil
import pytest

from kokoro_lab.errors import KokoroLabError
from kokoro_lab.lab.bench.client import TRANSPORTS, Transport, ask, receive, speech_request
from kokoro_lab.lab.bench.lifecycle import ending_of
from kokoro_lab.lab.bench.own_server import OwnServer, own_server
from kokoro_lab.lab.bench.persistent import listen
from kokoro_lab.lab.bench.received import ReceivedStream, differences, to_the_end
from kokoro_lab.lab.bench.texts import fixture_sentences, texts_of

STREAMS, AT_ONCE, EVERY = 100, 5, 12
"""Streams in all, at a time, and between a server that is back and the next one that is taken away."""
BACK_S, READY_S = 120.0, 10.0
SHUTDOWN_S = (30, 2)
"""Of the two servers: the first one's streams may end, those of the second are told."""
ENDINGS = ((0, signal.SIGTERM), (1, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGTERM))


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def balancer(repository: Path, folder: Path, ports: list[int]) -> Iterator[str]:
    """HAProxy by the file of the docs, but for its ports; gives its address."""
    text = (repository / "docs/haproxy.cfg").read_text("utf-8")
    for given, port in zip(("8880", "8881", "8882"), ports, strict=True):
        text = text.replace(f"    bind 127.0.0.1:{given}", f"    bind 127.0.0.1:{port}")
        text = text.replace(f" 127.0.0.1:{given}\n", f" 127.0.0.1:{port}\n")
    configuration = folder / "haproxy.cfg"
    configuration.write_text(text, "utf-8")
    with subprocess.Popen(["haproxy", "-db", "-f", str(configuration)]) as process:
        try:
            yield f"http://127.0.0.1:{ports[0]}"
        finally:
            process.terminate()


class Pair:
    """Two servers on fixed ports, of which one can be taken away and comes back."""

    def __init__(self, ports: list[int], command: list[str] | None, repository: Path) -> None:
        self._ports, self._command, self._repository = ports, command, repository
        self._stacks = [ExitStack(), ExitStack()]
        self.servers: list[OwnServer] = []
        for number in range(2):
            self.servers.append(self._started(number))

    def _started(self, number: int) -> OwnServer:
        settings = {
            "port": self._ports[number],
            "shutdown_s": SHUTDOWN_S[number],
            "allowed_hosts": "127.0.0.1,localhost",
            **{"concurrency": 2 * AT_ONCE, "capacity": 1e6, "degrade": "off", "first_audio_ttl_s": 0},
        }
        return self._stacks[number].enter_context(own_server(settings, self._command, self._repository))

    def take_away(self, number: int, how: signal.Signals) -> None:
        """End a server, its workers too if it is killed, and start it again when it has gone."""
        process = self.servers[number].process
        ended = [process, *(process.children(recursive=True) if how == signal.SIGKILL else [])]
        for one in ended:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(how)
        with suppress(psutil.TimeoutExpired):
            process.wait(SHUTDOWN_S[number] + 20)
        self._stacks[number].close()
        self.servers[number] = self._started(number)

    def close(self) -> None:
        for stack in self._stacks:
            stack.close()


SENTENCE = "This is a slow sentence that stands alone, number {} of stream {}. "
"""Takes the voice that hums half a second."""


@pytest.mark.parametrize(
    "hums",
    [
        pytest.param(True, marks=pytest.mark.test_all, id="hum"),
        pytest.param(False, marks=[pytest.mark.test_long, pytest.mark.model], id="real"),
    ],
)
def test_no_word_is_lost_behind_a_balancer(repository: Path, tmp_path: Path, hums: bool) -> None:
    if shutil.which("haproxy") is None:
        pytest.skip("HAProxy is not installed: `apt-get install haproxy`")
    ports, voice, command = free_ports(3), "af_heart", None
    texts = list(texts_of(fixture_sentences(), 400, 10, own_beginnings=False))
    if hums:
        voice = "hum"
        command = [sys.executable, "-m", "tests.server.tiny_server", str(tmp_path / "hum.onnx"), "patient"]
        texts = ["".join(SENTENCE.format(n, stream) for n in range(6)) for stream in range(10)]
    with balancer(repository, tmp_path, ports) as url, ExitStack() as stack:
        pair = Pair(ports[1:], command, repository)
        stack.callback(pair.close)
        until_s = time.monotonic() + READY_S
        while time.monotonic() < until_s:
            with suppress(KokoroLabError):
                ask(url, "GET", "/health")
                break
            time.sleep(0.1)
        wholes = [to_the_end(receive("sse", url, speech_request(text, voice))) for text in texts]
        done, over, taken = [0], threading.Event(), list[tuple[int, signal.Signals]]()

        def heard(number: int) -> tuple[Transport, ReceivedStream]:
            way = TRANSPORTS[number % len(TRANSPORTS)]
            body = speech_request(texts[number % len(texts)], voice)
            found = listen(partial(receive, way, url, body), back_s=BACK_S, patience_s=BACK_S)
            done[0] += 1
            return way, found

        def ends() -> None:
            for event in cycle(ENDINGS):
                target = done[0] + EVERY // 2
                while done[0] < target:
                    if over.wait(0.1):
                        return
                pair.take_away(*event)
                taken.append(event)

        with ThreadPoolExecutor(AT_ONCE + 1) as pool:
            ending = pool.submit(ends)
            try:
                found = list(pool.map(heard, range(STREAMS)))
            finally:
                over.set()
            ending.result()
    kinds = Counter((way, ending_of(one)) for way, one in found)
    print(f"{len(taken)} servers were ended; {dict(kinds)}")
    assert [differences(one.pcm, wholes[n % len(texts)].pcm) for n, (_, one) in enumerate(found)] == [
        (0, 0)
    ] * STREAMS
    assert {how for _, how in taken} == {signal.SIGTERM, signal.SIGKILL}
    assert {end for _, end in kinds} >= {"whole", "broken off"}
