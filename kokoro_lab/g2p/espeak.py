"""eSpeak NG for words that misaki does not know.

An eSpeak instance holds the state of the phrase in hand: two threads on one instance return each
other's phonemes. So each instance has a lock. An instance a thread would do as well, but a server's
every new thread would then wait 90 ms for its first unknown word; a word itself takes 15 µs.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from pathlib import Path
from typing import Any

from kokoro_lab.g2p.shared_lock import SharedLock

log = logging.getLogger(__name__)
# phonemizer warns of words that it counts otherwise and of languages that eSpeak switches to: both are
# ordinary here, and what they cost is in the fallbacks. Its own `get_logger` resets levels, but no filters
logging.getLogger("phonemizer").addFilter(lambda record: record.levelno >= logging.ERROR)

_SWITCH = re.compile(r"\([^()]*\)")  # `(ko)`: eSpeak says that it changes its language, which nobody speaks
PIECE_LETTERS, WORD_LETTERS = 20, 30
"""eSpeak says no more than 200 sounds of a word and leaves out the rest: a word longer than the latter is
said in pieces of the former, and so is one that it spells because it has no vowel."""
_VOWELS = frozenset("aeiouy")


def pieces(word: str) -> list[str]:
    """`word`, in parts that eSpeak says whole."""
    spelt = word.isascii() and not _VOWELS & set(word.lower())
    if len(word) <= (PIECE_LETTERS if spelt else WORD_LETTERS):
        return [word]
    return [word[at : at + PIECE_LETTERS] for at in range(0, len(word), PIECE_LETTERS)]


@cache
def leave_no_library() -> None:
    """Have each copy of eSpeak's library that phonemizer makes taken off the disk as soon as it is loaded.

    It makes one for each instance and removes it when the process ends, unless that is killed: 0.7 MB each
    time, for ever. What is loaded needs no name. To be called before there is an instance.
    """
    from phonemizer.backend.espeak import wrapper

    class Unnamed(wrapper.EspeakAPI):  # type: ignore[misc]  # the library has no types
        def __init__(self, *where: Any) -> None:
            super().__init__(*where)
            for copy in Path(self._tempdir).iterdir():
                copy.unlink()

    wrapper.EspeakAPI = Unnamed


class EspeakEnglish:
    """Phonemes of single English words in misaki's symbols; safe to call from any thread."""

    def __init__(self, *, british: bool) -> None:
        self._british = british
        self._backend: Any = None
        self._lock = SharedLock()

    def __call__(self, word: str) -> str | None:
        """Phonemes of `word`, or None if eSpeak has nothing to say or fails."""
        from misaki.token import MToken

        try:
            with self._lock:
                speak = self._loaded()
                parts = [speak(MToken(text=piece, tag="", whitespace=""))[0] for piece in pieces(word)]
            phonemes = "".join(filter(None, parts))
        except Exception as error:  # a C library behind ctypes: whatever it raises, the next level speaks
            log.warning("eSpeak failed on a word of %d characters: %s", len(word), type(error).__name__)
            return None
        return _SWITCH.sub("", phonemes).strip() or None if phonemes else None

    def _loaded(self) -> Any:
        if self._backend is None:
            from misaki.espeak import EspeakFallback

            leave_no_library()
            self._backend = EspeakFallback(british=self._british)
        return self._backend
