"""The G2P of each language, loaded when it is first needed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from kokoro_lab.config import Source
from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.errors import LanguageError
from kokoro_lab.extras import MISAKI
from kokoro_lab.g2p.english import EnglishG2P
from kokoro_lab.g2p.espeak import EspeakG2P, LetterG2P
from kokoro_lab.g2p.guarded import GuardedG2P
from kokoro_lab.g2p.protocol import OnFallback, Readings, SentenceG2P, SplicedG2P
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.detect import Known

log = logging.getLogger(__name__)

WITHOUT_MISAKI = "misaki is not installed: read by espeak"
ENGLISH_MB, ACCENT_MB, JAPANESE_MB, MANDARIN_MB, OTHER_MB = 100.0, 50.0, 60.0, 140.0, 20.0
"""Resident memory in MiB that a language takes: English with its tagger, the second accent of English with
its dictionaries, Japanese with its analyser, Mandarin with its dictionaries, and any other, which eSpeak
reads. Rounded up."""
WARM_TEXTS = {"ja": "準備。", "hi": "नमस्ते।", "zh": "准备好了，A。"}
WARM_TEXT = "Warm xqzzyk is on, and it wasn't open on Monday (or was it?): NASA read “twenty-one” of them."
"""The second word of this text is in no lexicon, so that eSpeak too is loaded."""


@dataclass(slots=True)
class Speakers:
    """The G2P of each language, with the next levels, which read if it fails. Thread-safe; loading one
    language does not delay another.

    Parameters
    ----------
    around : callable
        Called with the G2P of a language once it is loaded; the return value is used instead, such as one
        that stalls on purpose.
    room : callable
        Called before a language is loaded, with its tag and the MiB that it takes. Raises if there is not
        enough memory.
    home, source : optional
        The folder of the English tagger, and where it is fetched from; see `EnglishG2P`.
    """

    around: Callable[[SentenceG2P], SentenceG2P] = lambda g2p: g2p
    room: Callable[[str, float], None] = lambda language, needed_mb: None
    home: Path | None = None
    source: Source | None = None
    _speakers: dict[str, GuardedG2P] = field(default_factory=dict)
    _missing: dict[str, LanguageError] = field(default_factory=dict)
    _known: dict[str, Known] = field(default_factory=dict)
    _loading: dict[str, threading.Lock] = field(default_factory=dict)

    def of(self, language: str) -> GuardedG2P:
        """The G2P of a canonical tag, loaded and ready (English, Japanese and Mandarin take up to a second).

        Raises
        ------
        LanguageError
            The packages of the language are not installed.
        MemoryLimitError
            There is not enough memory for it.
        """
        found = self._speakers.get(language)
        if found is not None:
            return found
        with self._loading.setdefault(language, threading.Lock()):
            if language in self._missing:
                raise self._missing[language]
            if language not in self._speakers:
                self.room(language, self._needed_mb(language))
                try:
                    self._speakers[language] = self._made(language)
                except LanguageError as error:
                    self._missing[language] = error
                    raise
            return self._speakers[language]

    def known(self, language: str) -> Known | None:
        """The function that says whether a word is in misaki's dictionaries of `language`; None if there are
        none."""
        if not language.startswith("en-"):
            return None
        self.of(language)
        return self._known.get(language)

    def loaded(self) -> tuple[str, ...]:
        """The languages that have been needed so far."""
        return tuple(self._speakers)

    def _needed_mb(self, language: str) -> float:
        if language.startswith("en-"):
            return ACCENT_MB if any(tag.startswith("en-") for tag in self._speakers) else ENGLISH_MB
        return {"ja": JAPANESE_MB, "zh": MANDARIN_MB}.get(language, OTHER_MB)

    def _made(self, language: str) -> GuardedG2P:
        around = self.around  # not `self`, which the threads of a G2P would keep alive
        letters = SplicedG2P(LetterG2P(language), language)
        by_espeak = partial(_ready, partial(_espeak, language), language)
        by_misaki: dict[str, Callable[[], SentenceG2P]] = {"ja": _japanese, "zh": _mandarin}
        if language.startswith("en-"):
            by_misaki[language] = partial(_english, language, self._known, self.home, self.source)
        if language not in by_misaki:
            return GuardedG2P(lambda: around(by_espeak()), letters, name="espeak", below_name="characters")
        load = partial(_ready, by_misaki[language], language)
        espeak = GuardedG2P(by_espeak, letters, name="espeak", below_name="characters")
        return GuardedG2P(lambda: around(load()), espeak, name="misaki", below_name="espeak")


WARM_READINGS = 4
"""Number of sentences that a new G2P reads before it is used: on a machine with cold caches, the second
reading is still slower than the fourth."""


def _english(language: str, known: dict[str, Known], home: Path | None, source: Source | None) -> SentenceG2P:
    if find_spec("misaki") is None:
        log.warning("English is read by eSpeak, since misaki is not installed: %s", MISAKI)
        return _reporting(_espeak(language))
    g2p = EnglishG2P(language, home=home, source=source)
    known[language] = g2p.knows
    return g2p


def _reporting(espeak: SentenceG2P) -> SentenceG2P:
    """The G2P `espeak`, used because misaki is not installed: it adds a fallback that says so to each
    sentence."""

    def read(sentence: AlignedText, on_fallback: OnFallback, given: Readings = ()) -> list[Word]:
        on_fallback(Fallback("g2p", WITHOUT_MISAKI, *sentence.span(0, len(sentence))))
        return espeak(sentence, on_fallback, given)

    return read


def _espeak(language: str) -> SentenceG2P:
    return SplicedG2P(EspeakG2P(language), language)


def _ready(load: Callable[[], SentenceG2P], language: str) -> SentenceG2P:
    """A G2P that has read a sentence `WARM_READINGS` times, so that late loading does not look like a stall
    in the first request."""
    g2p = load()
    for _ in range(WARM_READINGS):
        g2p(AlignedText.of(WARM_TEXTS.get(language, WARM_TEXT)), lambda _: None)
    return g2p


def _japanese() -> SentenceG2P:
    from kokoro_lab.g2p.japanese import JapaneseG2P

    return SplicedG2P(JapaneseG2P(), "ja")


def _mandarin() -> SentenceG2P:
    from kokoro_lab.g2p.mandarin import MandarinG2P

    return SplicedG2P(MandarinG2P(), "zh")
