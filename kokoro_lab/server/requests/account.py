"""The account of one request for speech, from its acceptance to its end: options, times and outcome.

It makes the request's line in the log and feeds the rolling figures. It never holds the text.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from kokoro_lab.datatypes import SynthesisReport
from kokoro_lab.errors import DeadlineExceeded, Interrupted, KokoroLabError
from kokoro_lab.playback.buffering import BufferProfile, PreBuffer
from kokoro_lab.scheduling.deadlines import Claim
from kokoro_lab.server.health.figures import Outcome, ServerFigures
from kokoro_lab.server.health.logs import with_fields
from kokoro_lab.server.health.objectives import ServedRequest
from kokoro_lab.server.http.errors import outcome_of

log = logging.getLogger(__name__)

HASH_CHARACTERS = 16
_OF_REPORT = (
    "audio_s",
    "compute_s",
    "text_s",
    "model_s",
    "dsp_s",
    "first_audio",
    "segments",
    "statistics",
)
"""Fields of a report that are added to the log line; null without a report. `text_s` is normalisation and
G2P."""
_UNKNOWN = ("characters", "sha256", "chunk_ms", "pre_buffer_ms", "held_back_ms", "provider_path")
"""Fields that are null in the log line if the request was refused before they were known, or has no such
value."""


class Account:
    """Records what one request asked, what it cost and how it ended.

    Parameters
    ----------
    request_id : str
        Id of the request in the log.
    figures : ServerFigures
        The server's rolling figures, to which the measured times and the outcome are added.
    on_close : callable
        Called once at the end, with a `ServedRequest`: what a listener noticed.
    accepted_s : float, optional
        When the request was accepted, by `time.perf_counter`; now, unless given.

    Attributes
    ----------
    asked : dict
        The options of the request for the log; never its text.
    first_audio_s : float or None
        Seconds from the accepted request to the first sample of speech.
    interruption : KokoroLabError or None
        Why the request was stopped from outside.
    claim : Claim or None
        The claim of its stream on the cores, which counts how long the stream waited while others computed;
        None before the stream begins.
    """

    def __init__(
        self,
        request_id: str,
        figures: ServerFigures,
        on_close: Callable[[ServedRequest], None] = lambda _: None,
        *,
        accepted_s: float | None = None,
    ) -> None:
        self.request_id = request_id
        self.accepted_s = time.perf_counter() if accepted_s is None else accepted_s
        self.asked: dict[str, Any] = {}
        self.first_audio_s: float | None = None
        self.interruption: KokoroLabError | None = None
        self.shared = False
        self.claim: Claim | None = None
        self._figures = figures
        self._on_close = on_close
        self._usage = usage()
        self._hash = hashlib.sha256()
        self._lock = threading.Lock()
        self._closed = False
        self._report: SynthesisReport | None = None
        self._ttfb_s: float | None = None
        self._queue_s = 0.0
        self._streamed = self._cached = False
        self._player = PreBuffer()
        self._passed_over = False
        self._first_arrival_s: float | None = None
        self._first_made_s = 0.0
        self._last_s, self._last_length_s, self._heard_s = -math.inf, 0.0, 0.0
        self._sent_s: float | None = None
        self._blocked_s = self._starved_s = self._behind_s = 0.0
        self._needed_s = self._longest_gap_s = 0.0
        self.chunks = 0

    def asks(self, text: str, *, ephemeral: bool, **fields: Any) -> None:
        """Record the options of the request; of the text, only its length and, if that is allowed, its
        hash."""
        self.asked = {"characters": 0, "ephemeral": ephemeral, **fields}
        self.writes(text)

    def writes(self, text: str) -> None:
        """Record more text of a request whose text is still being written."""
        self.asked["characters"] += len(text)
        if not self.asked["ephemeral"]:
            self._hash.update(text.encode(errors="surrogatepass"))  # half of a surrogate pair may come alone
            self.asked["sha256"] = self._hash.hexdigest()[:HASH_CHARACTERS]

    def admitted(self) -> None:
        """Record that the request got its slot, for which it waited until now."""
        self._queue_s = self.age_s

    def streams(self, profile: BufferProfile) -> None:
        """Record that the request is sent while it is computed, in chunks by `profile`."""
        self._streamed = True
        self._player = PreBuffer.fixed(profile.pre_buffer_s)
        self.asked |= {
            "chunk_ms": round(profile.chunk_s * 1000),
            "pre_buffer_ms": round(profile.pre_buffer_s * 1000),
        }

    @property
    def age_s(self) -> float:
        """Seconds since the request was accepted."""
        return time.perf_counter() - self.accepted_s

    @property
    def underruns(self) -> int:
        """Chunks so far that a player with the advised pre-buffer would have waited for."""
        return self._player.underruns

    def first_byte(self) -> None:
        """Record the time of the first byte sent; only the first call counts."""
        if self._ttfb_s is not None:
            return
        self._ttfb_s = self.age_s
        self._figures.measured("ttfb_s", self._ttfb_s)

    def holds_back(self, held_back_s: float) -> None:
        """Record that the first chunk is sent only `held_back_s` after it was computed."""
        self.asked["held_back_ms"] = round(held_back_s * 1000)

    def chunk(
        self,
        length_s: float,
        *,
        cached: bool = False,
        text_came_s: float | None = None,
        made_s: float | None = None,
    ) -> None:
        """Record that a chunk of speech of `length_s` is ready to be sent.

        `cached` is True for a chunk that comes from the cache, belongs to a resumed stream, or waited for its
        text: such a first chunk gives no TTFA. `text_came_s` is when the text arrived for which the chunk
        waited. A listener who had heard everything before that time waited for the writer, which is no
        underrun. `made_s` is when the chunk was computed, by `time.perf_counter`; now, unless given.
        """
        now_s = time.perf_counter()
        if self.first_audio_s is None:
            self.first_audio_s = now_s - self.accepted_s
            self._cached = cached
            if not cached:
                self._figures.measured("ttfa_s" if self._streamed else "ttfa_file_s", self.first_audio_s)
        self.chunks += 1
        # While the socket takes nothing, the client is slow: that time is not ours
        if text_came_s is not None and self._first_arrival_s is not None:
            self._waited_for_text(text_came_s, self._first_arrival_s + self._heard_s)
        arrived_s = max(self._last_s, now_s - self._blocked_s - self._starved_s)  # sums may be rounded down
        self._sent_s = now_s
        self._player.arrived(arrived_s, length_s)
        made_s = arrived_s if made_s is None else made_s - self._blocked_s - self._starved_s
        if self._first_arrival_s is None:
            self._first_arrival_s, self._first_made_s = arrived_s, made_s
        else:
            gap_s = max(0.0, arrived_s - self._last_s - self._last_length_s)
            self._figures.measured("chunk_gap_s", gap_s)
            self._longest_gap_s = max(self._longest_gap_s, gap_s)
            # By when chunks were made: a first chunk that was held back does not make the others come sooner
            late_s = made_s - self._first_made_s - self._heard_s - self._behind_s
            self._needed_s = max(self._needed_s, late_s)
        self._heard_s += length_s
        self._last_s, self._last_length_s = arrived_s, length_s

    def _waited_for_text(self, text_came_s: float, on_time_s: float) -> None:
        """Count how long a listener who had heard everything waited for the text that came at `text_came_s`.

        Without late chunks, the listener would have heard everything at `on_time_s`. After the wait, its
        player holds back its pre-buffer once more, and the lateness before the wait counts no more.
        """
        all_heard_s = max(self._last_s, self._player.runs_out_s - self._player.target_s)
        starved_s = text_came_s - self._blocked_s - self._starved_s - all_heard_s
        if starved_s > 0:
            self._starved_s += starved_s
            self._behind_s = all_heard_s - on_time_s

    def taken(self) -> None:
        """Record that the socket has taken the last chunk."""
        if self._sent_s is not None:
            self._blocked_s += time.perf_counter() - self._sent_s
            self._sent_s = None

    def passed_over(self) -> None:
        """Record that a chunk was computed that the client of a resumed stream already has."""
        self._passed_over = True

    @property
    def speaks(self) -> bool:
        """Whether speech is being computed: a chunk was sent, or passed over."""
        return self._passed_over or self.first_audio_s is not None

    def stalled(self) -> None:
        """Record a stall: no audio was ready for so long that the client gets a keep-alive."""
        self._figures.stalled()

    def finished(self, report: SynthesisReport) -> None:
        """Record that all speech was computed."""
        self._report = report
        if self._rtf is not None:
            self._figures.measured("rtf", self._rtf)

    def reason(self, error: Exception) -> Exception:
        """If `error` only says that the synthesis was stopped, and the reason is known: the reason; else
        `error`."""
        if isinstance(error, Interrupted) and self.interruption is not None:
            return self.interruption
        return error

    def interrupted(self) -> Outcome | None:
        """If the request was stopped from outside: its outcome; else None."""
        if self.interruption is None:
            return None
        return "expired" if isinstance(self.interruption, DeadlineExceeded) else "cancelled"

    def outcome_of(self, error: Exception) -> Outcome:
        """The outcome of a request that ends with an error. If the request was stopped from outside, the
        outcome is that of the stop."""
        return self.interrupted() or outcome_of(self.reason(error))

    def close(self, outcome: Outcome, code: str | None = None) -> None:
        """End the account: count the request and write its log line. Only the first call has an effect."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._figures.ended(outcome, self.underruns)
        interruption = self.interruption
        fields = {
            "event": "request",
            "request_id": self.request_id,
            "outcome": outcome,
            "code": code or (interruption.code if interruption else None),
            **dict.fromkeys(_UNKNOWN),
            **self.asked,
            **self._times(),
        }
        log.info("%s %s", self.request_id, outcome, extra=with_fields(fields))
        self._on_close(
            ServedRequest(
                outcome=outcome,
                ttfa_s=self.first_audio_s if self._streamed and not self._cached else None,
                rtf=self._rtf,
                underruns=self.underruns,
                needed_s=self._needed_s if self._streamed and self.chunks and not self._cached else None,
                held_back_s=self.asked.get("held_back_ms", 0) / 1000,
                shared=self.shared,
            )
        )

    @property
    def _rtf(self) -> float | None:
        """The RTF. None before the end, if there was no word, and for a resumed stream, where much of the
        computed audio is not sent."""
        if self._report is None or self.asked.get("resumed") or not self._report.segments:
            return None
        return self._report.rtf

    def _times(self) -> dict[str, Any]:
        cpu_s, gc_s = (now - before for now, before in zip(usage(), self._usage, strict=True))
        report = self._report
        times: dict[str, Any] = {
            "queue_s": self._queue_s,
            "ttfb_s": self._ttfb_s,
            "ttfa_s": self.first_audio_s,
            "total_s": self.age_s,
            "blocked_s": self._blocked_s,
            "starved_s": self._starved_s,
            "chunks": self.chunks,
            "underruns": self.underruns,
            "longest_gap_s": self._longest_gap_s,
            "needed_pre_buffer_s": self._needed_s,
            "cpu_s": cpu_s,
            "gc_s": gc_s,
            # Both are of the whole process, and of this request alone only if no other was served meanwhile
            "shared": self.shared,
            "waited_s": self.claim.waited_s if self.claim else None,
            "rtf": self._rtf,
            **{name: None if report is None else getattr(report, name) for name in _OF_REPORT},
        }
        if report is not None:
            times |= {
                "provider_path": f"{report.requested_provider} → {report.active_provider}",
                "fallbacks": dict(Counter(fallback.stage for fallback in report.fallbacks)),
            }
        return {name: round(v, 4) if isinstance(v, float) else v for name, v in times.items()}


class _Collections:
    """Times every garbage collection, during which no other Python code of the process runs."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._started_s = 0.0
        gc.callbacks.append(self._on)

    def _on(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        if phase == "start":
            self._started_s = time.perf_counter()
        else:
            self.seconds += time.perf_counter() - self._started_s


@cache
def _collections() -> _Collections:
    return _Collections()


def usage() -> tuple[float, float]:
    """CPU seconds of this process over all threads, and the seconds of garbage collection.

    Collections are timed from the first call on.
    """
    return time.process_time(), _collections().seconds
