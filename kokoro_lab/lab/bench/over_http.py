"""Our server as a client hears it: TTFB is the first byte of the body, TTFA the first byte of speech."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np
import psutil

from kokoro_lab.audio import BYTES_A_SAMPLE, WAV_HEADER_BYTES
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.trial import Listener

READ_BYTES = 65_536
"""The most that is taken at a time. What has arrived is taken at once, however little it is."""
ANSWER_S = 300.0
"""A server that sends nothing for so long has failed."""
LEFT_S = 10.0
"""A server that computes for so long for nobody has failed."""
FULL_SCALE = 32_768


class OverHttp:
    """A server that is running, asked by `POST /v1/audio/speech`, on a new connection for each text.

    Parameters
    ----------
    url : str
        Such as `http://127.0.0.1:8880`.
    voice : str
        A name, or a blend.
    process : psutil.Process
        The server's, for its memory.
    streamed : bool
        As a stream, or as a whole file.
    response_format : {"pcm", "wav"}
        Of WAV, the header is passed over.
    """

    name = "kokoro-lab http"

    def __init__(
        self,
        url: str,
        voice: str,
        process: psutil.Process,
        *,
        streamed: bool = True,
        response_format: Literal["pcm", "wav"] = "pcm",
    ) -> None:
        self.streamed = streamed
        self.process = process
        self._address = urlsplit(url).netloc
        self._voice = voice
        self._format = response_format

    def warm(self) -> None:
        self.speak("Ready.", Listener())

    def speak(self, text: str, listener: Listener) -> None:
        """Speak `text`.

        Raises
        ------
        SynthesisError
            The server answered with an error, or broke off.
        """
        body = {
            "input": text,
            "voice": self._voice,
            "response_format": self._format,
            "stream": self.streamed,
            "sample_rate": SAMPLE_RATE_HZ,
        }
        with self._asked("POST", "/v1/audio/speech", body) as answer:
            pcm = _PcmReader(header_bytes=WAV_HEADER_BYTES if self._format == "wav" else 0)
            while data := answer.read1(READ_BYTES):
                listener.gets_bytes()
                samples = pcm.push(data)
                if len(samples):
                    listener.hears(samples)
                if listener.satisfied:
                    break
        if listener.satisfied:
            self._until_idle()

    def _until_idle(self) -> None:
        """Wait until the server has noticed that its listener left: the next text must find it idle."""
        started = time.monotonic()
        while self.active:
            if time.monotonic() - started > LEFT_S:
                raise SynthesisError(f"The server still computes {LEFT_S:g} s after its listener left.")
            time.sleep(0.02)

    def facts(self) -> dict[str, Any]:
        """As the server states them."""
        status = self._status()
        kept = (
            *("variant", "model_sha256", "requested_provider", "active_provider", "threads", "concurrency"),
            "conversion",
        )
        return {name: status[name] for name in kept}

    @property
    def active(self) -> int:
        """Syntheses under way."""
        return int(self._status()["active"])

    def forget(self) -> None:
        """Have the server empty its caches, so that it stands as if nothing had been asked before."""
        with self._asked("POST", "/performance/clear_cache"):
            pass

    def _status(self) -> dict[str, Any]:
        with self._asked("GET", "/status") as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    @contextmanager
    def _asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> Iterator[HTTPResponse]:
        connection = HTTPConnection(self._address, timeout=ANSWER_S)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise SynthesisError(
                    f"The server answered {answer.status}: {answer.read(500).decode(errors='replace')}"
                )
            yield answer
        except (OSError, HTTPException) as error:
            raise SynthesisError(
                f"The server broke off: {type(error).__name__}: {error}",
                mend="Its log says why; KOKORO_VERBOSE_LOGS=true makes it say more.",
            ) from error
        finally:
            connection.close()


class _PcmReader:
    """Bytes as they come off the wire to samples: past the header, and over samples that were cut in two."""

    def __init__(self, header_bytes: int) -> None:
        self._header_bytes = header_bytes
        self._rest = b""

    def push(self, data: bytes) -> Samples:
        """The samples that are complete with `data`: float32, shape (n,), within ±1."""
        skipped = min(self._header_bytes, len(data))
        self._header_bytes -= skipped
        data = self._rest + data[skipped:]
        whole = len(data) - len(data) % BYTES_A_SAMPLE
        self._rest = data[whole:]
        samples: Samples = np.frombuffer(data[:whole], "<i2").astype(np.float32) / np.float32(FULL_SCALE)
        return samples
