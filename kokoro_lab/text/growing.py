"""A text that may still be written while it is read, by another thread."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import regex

from kokoro_lab.datatypes import Fallback
from kokoro_lab.errors import Interrupted, TextError
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.sanitise import LONG_CHARS, SAFE, Noted, clean, cuts
from kokoro_lab.typed import require_type

_SAFE = regex.compile(SAFE, regex.REVERSE)
LEAST_ROOM_CHARS = 4 * LONG_CHARS
"""The smallest number of characters that may wait to be read, whatever `most_ahead` says. With fewer, a
writer would wait in the middle of a long sentence, and the reader would never see the text after the sentence
that tells where it ends."""
STOP_POLL_S = 0.05
"""How often a waiting thread checks whether it was stopped."""


def all_of_it(text: AlignedText) -> AlignedText:
    """Return a text unchanged: the default of `leaving_out`."""
    return text


class ReadAhead:
    """Reads a cleaned text from its beginning, and looks ahead only as far as a decision needs.

    Parameters
    ----------
    text : AlignedText
        The whole text, or the part written so far.
    """

    def __init__(self, text: AlignedText) -> None:
        self._text = text
        self._at = 0

    def rest(self, least: int, most: int) -> str:
        """The next characters, which stay unread: at most `most`, and at least `least` unless this part of
        the text ends before."""
        return self._text.text[self._at : self._at + most]

    def take(self, count: int) -> AlignedText:
        """Read the next `count` characters."""
        self._at += count
        return self._text.cut(self._at - count, self._at)

    def ahead(self, count: int) -> AlignedText:
        """The next `count` characters, which stay unread. `rest` must have returned them."""
        return self._text.cut(self._at, self._at + count)

    def next_part(self) -> bool:
        """Continue with the next part; False if the text has ended."""
        return False


class GrowingText(ReadAhead):
    """A text that is written by one thread and read by another.

    The reader gets the same text however the writer cuts it into strings, and whenever they come. `flush`
    ends a part: the text before it is read as if nothing followed. Unlike `sanitise`, it does not refuse the
    bytes of a file, which cannot be recognised from a beginning alone.

    Parameters
    ----------
    noted : callable
        Called with a fallback for visible characters that are left out.
    most_ahead : int
        Characters that may wait to be read.
    max_wait_s : float
        Seconds without new text after which a part ends by itself. Then the speech depends on when the text
        came, and a fallback says so.
    leaving_out : callable
        Called with cleaned text; returns it without the words that are not to be read aloud.
    stop : threading.Event, optional
        Set to cancel: then `Interrupted` is raised in a thread that waits for text or for room.
    """

    def __init__(
        self,
        noted: Noted = lambda _: None,
        *,
        most_ahead: int = 20_000,
        max_wait_s: float = math.inf,
        stop: threading.Event | None = None,
        leaving_out: Callable[[AlignedText], AlignedText] = all_of_it,
    ) -> None:
        super().__init__(AlignedText.of(""))
        self.noted = noted
        self.waiting: Callable[[], AbstractContextManager[None]] = nullcontext
        """Makes the context in which the reader waits for the writer."""
        self.blank = True
        """Whether nothing but white space has been written."""
        self._most_ahead = max(most_ahead, LEAST_ROOM_CHARS)
        self._max_wait_s = max_wait_s
        self.written_s = time.perf_counter()
        """When the last text arrived, by `time.perf_counter`."""
        self._changed = threading.Condition()
        self._new: list[AlignedText] = []
        """Cleaned text that is not joined to `_text` yet, since each joining copies all unread text."""
        self._new_chars = 0
        self._raw = ""
        self._offset = 0  # where `_raw` begins in the text as it was written
        self._parts: deque[int] = deque()
        """Positions at which parts end, counted like `_at`."""
        self._ended = False
        self._leaving_out = leaving_out
        self._stop = stop or threading.Event()
        self._closed = False
        self.came_s: float | None = None
        """When the text arrived for which the reader last waited, by `time.perf_counter`."""
        self.waiting_since: float | None = None
        """Since when the reader has been waiting for text, by `time.perf_counter`; None while it does not
        wait."""
        self._awaited = 0
        """Number of characters for which the reader has waited."""
        self._failure: BaseException | None = None

    @property
    def length(self) -> int:
        """Characters written so far."""
        return self._offset + len(self._raw)

    @property
    def is_full(self) -> bool:
        """Whether `append` would wait for room."""
        with self._changed:
            return not (self._over() or self._has_room(0, wait=True))

    def append(self, text: str, *, wait: bool = True) -> None:
        """Write `text`.

        Parameters
        ----------
        text : str
        wait : bool
            Whether to wait while too much text is unread.

        Raises
        ------
        Interrupted
            The text was cancelled.
        TextError
            `text` is no string; the text has ended; or too much text is unread and `wait` is False.
        """
        require_type("text", text, str, TextError)
        with self._changed:
            self._require_open()
            while not (self._over() or self._has_room(len(text), wait=wait)):
                if not wait:
                    waiting = self._unread() + len(self._raw)
                    raise TextError(
                        f"{len(text)} characters, and {waiting} that wait to be spoken, are more than "
                        f"{self._most_ahead} characters.",
                        field="text",
                        mend="Send less, once some of it has been heard; flush a block that is longer.",
                    )
                self._changed.wait(STOP_POLL_S)
            self._go_on()
            self._raw += text
            self.blank = self.blank and not text.strip()
            self.written_s = time.perf_counter()
            while safe := self._safe_chars():
                self._clean(safe)

    def flush(self) -> None:
        """Let the reader read all that was written so far, as if the text ended here."""
        with self._changed:
            self._require_open()
            self._end_part()

    def end(self) -> None:
        """End the text: nothing more is written."""
        with self._changed:
            self._clean(len(self._raw))
            self._ended = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """End the text because the writer failed. The reader reads the text so far, and then `error` is
        raised in its thread."""
        with self._changed:
            self._failure = error
            self.end()

    def cancel(self) -> None:
        """Stop the reader; `Interrupted` is raised in a thread that waits for text or for room."""
        self._stop.set()
        self.close()

    def close(self) -> None:
        """End reading; `Interrupted` is raised in a writer's thread that waits for room."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def rest(self, least: int, most: int) -> str:
        with self._changed:
            if not self._known(least):
                self.waiting_since, self._awaited = time.perf_counter(), least
                self._changed.notify_all()
                with self.waiting():
                    while not self._known(least):
                        self._wait()
                self.waiting_since, self.came_s = None, time.perf_counter()
            self._go_on()
            if self._failure is not None and not self._parts and self._unread() < least:
                raise self._failure
            if self._new:
                self._text = AlignedText.joined((self._text, *self._new))
                self._new, self._new_chars = [], 0
            stop = self._parts[0] if self._parts else len(self._text.text)
            return self._text.text[self._at : min(stop, self._at + most)]

    def take(self, count: int) -> AlignedText:
        with self._changed:
            taken = super().take(count)
            if self._at > LEAST_ROOM_CHARS:  # seldom, because the remaining text is copied
                self._text = self._text.cut(self._at, len(self._text.text))
                self._parts = deque(end - self._at for end in self._parts)
                self._at = 0
            self._changed.notify_all()
            return taken

    def next_part(self) -> bool:
        with self._changed:
            if self._parts:
                self._parts.popleft()
                return True
            return False

    def _wait(self) -> None:
        has_text = self._unread() > 0 or bool(self._raw.strip())
        left_s = self.written_s + self._max_wait_s - time.perf_counter()
        if has_text and left_s <= 0:
            at = self.length
            reason = f"spoken as if it ended here: nothing more came within {1000 * self._max_wait_s:.0f} ms"
            self.noted(Fallback("text", reason, at, at))
            self._end_part()
        else:
            self._changed.wait(min(left_s, STOP_POLL_S) if has_text else STOP_POLL_S)

    def _end_part(self) -> None:
        self._clean(len(self._raw))
        end = self._at + self._unread()
        if not self._parts or self._parts[-1] != end:
            self._parts.append(end)
        self._changed.notify_all()

    def _known(self, least: int) -> bool:
        return self._over() or self._ended or bool(self._parts) or self._unread() >= least

    def _over(self) -> bool:
        return self._closed or self._stop.is_set()

    def _has_room(self, count: int, *, wait: bool) -> bool:
        if wait and self.waiting_since is not None and not self._known(self._awaited):
            return True  # the thread that reads is the one that waits for this
        return self._unread() + len(self._raw) + (1 if wait else count) <= self._most_ahead

    def _require_open(self) -> None:
        if self._ended:
            raise TextError("This text has ended.", field="text", mend="Begin another one.")

    def _unread(self) -> int:
        return len(self._text.text) + self._new_chars - self._at

    def _go_on(self) -> None:
        if self._over():
            raise Interrupted("This text was cancelled.")

    def _clean(self, count: int) -> None:
        new = self._cleaned(AlignedText.of(self._raw[:count], self._offset))
        self._new.append(new)
        self._new_chars += len(new)
        self._raw, self._offset = self._raw[count:], self._offset + count
        self._changed.notify_all()

    def _safe_chars(self) -> int:
        """How many characters can be cleaned now with the same result whatever follows."""
        cut = next(cuts(self._raw), 0)
        found = None if cut else _SAFE.search(self._raw)
        return found.end() if found else cut

    def _cleaned(self, raw: AlignedText) -> AlignedText:
        return self._leaving_out(clean(raw, self.noted))


class GrowingLines(GrowingText):
    """A growing text that is read in whole lines and not cleaned: the reader cleans them."""

    def _safe_chars(self) -> int:
        return max(self._raw.rfind("\n"), self._raw.rfind("\r", 0, -1)) + 1

    def _cleaned(self, raw: AlignedText) -> AlignedText:
        return raw
