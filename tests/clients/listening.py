"""What clients were sent, as samples; and a server that has no room."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, get_args

import av
import httpx2
import numpy as np
import numpy.typing as npt

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.server.requests.speech_request import SpeechRequest
from tests.server.conftest import CONCURRENCY, RunningServer, wait_until

TEXT = "Hello there. And you, I should think."
SLOW = "Here is the first of the sentences, all of it. " + "And this is a slow one, it takes its time. " * 40

FORMATS: tuple[str, ...] = get_args(get_args(SpeechRequest.model_fields["response_format"].annotation)[0])
"""Whatever the server offers."""

PRIMER_SAMPLES = SAMPLE_RATE_HZ // 20
DELAY_S = 0.2
"""The primer, and what a codec puts before and after."""


def samples_of(kind: str, data: bytes) -> npt.NDArray[np.float32]:
    """Mono at 24 kHz, decoded by FFmpeg's libraries as most players do it."""
    if kind == "pcm":
        return np.frombuffer(data, "<i2").astype(np.float32) / 32768
    to_mono = av.AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE_HZ)
    with av.open(io.BytesIO(data)) as container:
        frames = [block for frame in container.decode(audio=0) for block in to_mono.resample(frame)]
    frames += to_mono.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])


def reference(server: RunningServer, text: str, **fields: Any) -> npt.NDArray[np.float32]:
    """What `server` says for `text`, without the primer, asked as plainly as can be.

    Asked again while the server has no room: a client that has just left may not have been missed yet.
    """
    body = {"input": text, "response_format": "pcm", **fields}
    deadline_s = time.monotonic() + 60
    while True:
        answer = httpx2.post(
            server.speech_url, json=body, headers={"Authorization": "Bearer sesame"}, timeout=60
        )
        if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > deadline_s:
            return samples_of("pcm", answer.raise_for_status().content)[PRIMER_SAMPLES:]
        time.sleep(0.1)


def assert_speech(kind: str, data: bytes, server: RunningServer, text: str, **fields: Any) -> None:
    """`data` is the whole of `text`, as loud as it was made."""
    heard = samples_of(kind, data)
    said = reference(server, text, **fields)
    assert len(said) > SAMPLE_RATE_HZ / 2
    assert 0 <= (len(heard) - len(said)) / SAMPLE_RATE_HZ + 0.001 < DELAY_S
    energy_db = 10 * np.log10(np.sum(heard**2) / np.sum(said**2))
    assert abs(energy_db) < 1


@contextmanager
def no_room(server: RunningServer) -> Iterator[None]:
    """All slots taken, until the end of the block.

    Who has heard a text takes its slot again at once, so a client that comes back when told finds none.
    """
    done = threading.Event()

    def listen() -> None:
        while not done.is_set():
            with httpx2.stream("POST", server.speech_url, json={"input": SLOW}) as answer:
                for _ in answer.iter_raw():
                    if done.is_set():
                        return

    threads = [threading.Thread(target=listen) for _ in range(CONCURRENCY)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: server.status()["active"] == CONCURRENCY)
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
        wait_until(lambda: server.status()["active"] == 0)
