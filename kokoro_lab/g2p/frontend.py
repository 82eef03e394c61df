"""The text half of the pipeline in one place: any string in, segments out, as they are needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kokoro_lab.datatypes import Fallback, LexiconEntry, Segment, Word
from kokoro_lab.g2p.english import EnglishG2P, OnFallback
from kokoro_lab.g2p.lexicon import Lexicon, read_with
from kokoro_lab.g2p.lexicons import Lexicons
from kokoro_lab.g2p.vocab import encode, symbols
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.language import resolve_language
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.segment import CLOSERS, PAUSE_S, SpokenSentence, pack, sentences


@dataclass(slots=True)
class FrontEnd:
    """Sanitation, sentences, G2P and packing. Makes each language's G2P once; thread-safe.

    Parameters
    ----------
    lexicons : Lexicons
        Those that the environment names, unless others are given.
    """

    lexicons: Lexicons = field(default_factory=Lexicons.from_settings)
    _g2p: dict[str, EnglishG2P] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def cleaned(self, text: str) -> AlignedText:
        """The text without what nobody says, with offsets into the original.

        Raises
        ------
        TextError
            Not a string, or binary.
        """
        return sanitise(text).strip()

    def segments(self, text: str, language: str, on_fallback: OnFallback) -> Iterator[Segment]:
        """Segments of `text`, each made when it is asked for. None if there is nothing to speak."""
        return self.segments_of(self.cleaned(text), resolve_language(language), on_fallback)

    def segments_of(
        self, text: AlignedText, language: str, on_fallback: OnFallback, lexicon: Lexicon | None = None
    ) -> Iterator[Segment]:
        """Segments of a text that is clean already; `lexicon` if it is not the current one."""
        lexicon = lexicon or self.lexicons.current()
        spoken = self._spoken(text, language, on_fallback, lexicon)
        return pack(spoken, space_id=symbols()[" "], language=language)

    def describe(self, text: str, language: str, entries: Sequence[LexiconEntry] = ()) -> dict[str, Any]:
        """How `text` will be read, as plain data: what the `text` command prints."""
        fallbacks: list[Fallback] = [*self.lexicons.problems()]
        language = resolve_language(language)
        lexicon = self.lexicons.current().with_request(entries)
        cleaned = self.cleaned(text)
        normalised = [
            read_with(lexicon, sentence.text, language)[0].text for sentence in sentences(cleaned, language)
        ]
        segments = list(self.segments_of(cleaned, language, fallbacks.append, lexicon))
        return {
            "text": text,
            "normalized": " ".join(normalised),
            "phonemes": " ".join(segment.phonemes for segment in segments),
            "words": [
                {
                    "text": word.text,
                    "start": word.start,
                    "end": word.end,
                    "phonemes": word.phonemes,
                    "language": word.language,
                    "source": word.source,
                }
                for segment in segments
                for word in segment.words
            ],
            "segments": [
                {
                    "segment_id": segment.segment_id,
                    "start": segment.start,
                    "end": segment.end,
                    "phonemes": segment.phonemes,
                    "token_count": len(segment.token_ids),
                    "pause_after_s": segment.pause_after_s,
                }
                for segment in segments
            ],
            "fallbacks": [asdict(fallback) for fallback in fallbacks],
        }

    def warm(self, language: str) -> None:
        """Load what `language` needs and read one word, so that the first request does not wait."""
        list(self.segments("Warm xqzzyk.", language, lambda _: None))  # the second word is eSpeak's

    def _spoken(
        self, text: AlignedText, language: str, on_fallback: OnFallback, lexicon: Lexicon
    ) -> Iterator[SpokenSentence]:
        g2p = self._speaker(language)
        for sentence in sentences(text, language):
            said, given = read_with(lexicon, sentence.text, language)
            words: list[Word] = g2p(said, on_fallback, given)
            if words and (sentence.ends_line or sentence.ends_paragraph):
                words[-1] = _ended(words[-1])
            if words:
                ids = tuple(encode(word.phonemes) for word in words)
                yield SpokenSentence(tuple(words), ids, sentence.ends_paragraph)

    def _speaker(self, language: str) -> EnglishG2P:
        with self._lock:
            if language not in self._g2p:
                self._g2p[language] = EnglishG2P(language)
            return self._g2p[language]


def _ended(word: Word) -> Word:
    """A heading or an item of a list ends like a sentence, whether or not its author put a stop."""
    if word.phonemes.rstrip("".join(CLOSERS))[-1:] in PAUSE_S:
        return word
    return replace(word, phonemes=word.phonemes + ".")
