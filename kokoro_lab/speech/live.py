"""Live text: the speech of a text that is still being written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from kokoro_lab.datatypes import AudioChunk, SynthesisReport, WordTiming
from kokoro_lab.errors import Interrupted
from kokoro_lab.text.growing import GrowingText

if TYPE_CHECKING:
    from kokoro_lab.speech.stream import SpeechStream


class LiveSpeech(Iterator[AudioChunk]):
    """The speech of a text that is still being written: `append` text, iterate for chunks. Made by
    `Engine.session`.

    The speech depends on the text alone, and not on how it was cut or when it came, unless `flush` is called.
    One thread may write while another one listens.

    Parameters
    ----------
    text : GrowingText
        The text that `stream` reads.
    stream : SpeechStream
    """

    def __init__(self, text: GrowingText, stream: SpeechStream) -> None:
        self._text = text
        self.stream = stream
        self.appended: Callable[[str], None] = lambda _: None
        """A function that is called with each string after it has been appended, for instance to record it;
        by default, it does nothing."""

    @property
    def is_full(self) -> bool:
        """Whether `append` would wait until some of what was written is read."""
        return self._text.is_full

    def append(self, text: str, *, wait: bool = True) -> None:
        """Write more text.

        Parameters
        ----------
        text : str
        wait : bool
            Whether to wait while much that was written before is still to be read.

        Raises
        ------
        Interrupted
            The speech was cancelled.
        TextError
            `wait` is False, and too much is still to be read.
        """
        self._text.append(text, wait=wait)
        self.appended(text)

    def flush(self) -> None:
        """Have the text so far spoken now, as if it ended here."""
        self._text.flush()

    def end(self) -> None:
        """End the text: nothing more is written, and the stream ends when all is spoken."""
        self._text.end()

    def cancel(self) -> None:
        """Stop speaking: no further chunk comes, and nothing is computed after the window that is under
        way."""
        self._text.cancel()

    def write_from(self, pieces: Iterable[str]) -> None:
        """Write all that `pieces` yields, in a thread of its own; what it raises is raised by `next`."""

        def write() -> None:
            try:
                for each in pieces:
                    self.append(each)
            except Interrupted:
                pass  # nobody listens any more
            except BaseException as error:
                self._text.fail(error)
            else:
                self.end()

        threading.Thread(target=write, name="writer", daemon=True).start()

    def __next__(self) -> AudioChunk:
        return next(self.stream)

    def close(self) -> None:
        """Stop reading and speaking the text."""
        self.cancel()
        with suppress(ValueError):  # another thread is iterating it, and ends by itself
            self.stream.close()

    @property
    def starving_s(self) -> float:
        """For how long the speech has waited for text; 0 while it does not wait."""
        since = self._text.waiting_since
        return 0.0 if since is None else time.perf_counter() - max(since, self._text.written_s)

    @property
    def timings(self) -> list[WordTiming]:
        """When the words of segments that are done are heard."""
        return self.stream.timings

    @property
    def report(self) -> SynthesisReport:
        """The report of the speech; complete only after the last chunk."""
        return self.stream.report
