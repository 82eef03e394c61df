"""The text half of the pipeline in one place: any string in, segments out, as they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

from kokoro_lab.datatypes import PLAIN, Fallback, LexiconEntry, Place, Segment, Word
from kokoro_lab.errors import LanguageError, MemoryLimitError
from kokoro_lab.g2p import marked
from kokoro_lab.g2p.guarded import GuardedG2P, SentenceReading
from kokoro_lab.g2p.lexicon import Lexicon, read_with
from kokoro_lab.g2p.lexicons import Lexicons
from kokoro_lab.g2p.phoneme_cache import Key, PhonemeCache
from kokoro_lab.g2p.protocol import OnFallback
from kokoro_lab.g2p.speakers import Speakers
from kokoro_lab.g2p.vocab import encode, symbols
from kokoro_lab.text import normalise
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.language import resolve_language, understood
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.segment import SpokenSentence, ended, pack, sentences
from kokoro_lab.text.spans import Forced, LanguageSpan, language_spans
from kokoro_lab.text.ssml import SsmlDocument, parse


@dataclass(frozen=True, slots=True)
class Languages:
    """What is known of a text's languages before it is looked at.

    Parameters
    ----------
    base : str
        Of the request; a canonical tag.
    accent : str, optional
        Of the voice: where the text is English and the request does not say which, the voice's own.
    detect : {"auto", "scripts", "off"}
        How far others are looked for; see `kokoro_lab.text.spans`.
    forced : sequence of (start, end, language)
        What the text says itself (`xml:lang`), as ranges of the original, inner ones after outer ones.
    remembered : bool
        Whether what is read may come from the cache and be kept there.
    """

    base: str
    accent: str | None = None
    detect: str = "auto"
    forced: Forced = ()
    remembered: bool = True


@dataclass(slots=True)
class FrontEnd:
    """Sanitation, sentences, languages, lexicon, normalisation, G2P and packing. Thread-safe.

    Parameters
    ----------
    lexicons : Lexicons
        Those that the environment names, unless others are given.
    speakers : Speakers
        The G2P of each language.
    cache : PhonemeCache
        Of sentences that were read before.
    """

    lexicons: Lexicons = field(default_factory=Lexicons.from_settings)
    speakers: Speakers = field(default_factory=Speakers)
    cache: PhonemeCache = field(default_factory=PhonemeCache)

    def cleaned(self, text: str, on_fallback: OnFallback = lambda _: None) -> AlignedText:
        """The text without what nobody says, with offsets into the original.

        Raises
        ------
        TextError
            Not a string, or binary.
        """
        return sanitise(text, on_fallback).strip()

    def segments(self, text: str, language: str, on_fallback: OnFallback) -> Iterator[Segment]:
        """Segments of `text`, each made when it is asked for. None if there is nothing to speak."""
        return self.segments_of(self.cleaned(text, on_fallback), resolve_language(language), on_fallback)

    def read(
        self, text: str, input_format: str, language: str, on_fallback: OnFallback = lambda _: None
    ) -> AlignedText | SsmlDocument:
        """What `segments_of` takes: `text` cleaned, or the document that it is.

        Raises
        ------
        TextError
            Not a string, binary, or as SSML (`SsmlError`) not of the subset that is spoken.
        """
        return (
            parse(text, language, on_fallback) if input_format == "ssml" else self.cleaned(text, on_fallback)
        )

    def segments_of(
        self,
        text: AlignedText | SsmlDocument,
        language: str | Languages,
        on_fallback: OnFallback,
        lexicon: Lexicon | None = None,
        place: Place | None = None,
    ) -> Iterator[Segment]:
        """Segments of a text that is clean already; `lexicon` if it is not the current one.

        From the sentence of `place` on, where one is given: those before are found, but not read.
        """
        languages = Languages(language) if isinstance(language, str) else language
        lexicon = lexicon or self.lexicons.current()
        place = place or Place()
        space_id = symbols()[" "]
        if isinstance(text, AlignedText):
            spoken = self._spoken(text, languages, on_fallback, lexicon, place.sentence)
            return pack(spoken, space_id=space_id, language=languages.base, first_id=place.first_segment_id)
        for fallback in text.fallbacks:
            on_fallback(fallback)
        # A document's breaks and styles are counted from its beginning, so it is always read from there
        read = partial(self._marked_words, text, languages, on_fallback, lexicon)
        spoken = marked.spoken(text, languages.base, read)
        return marked.styled(pack(spoken, space_id=space_id, language=languages.base), text)

    def describe(
        self,
        text: str,
        language: str,
        entries: Sequence[LexiconEntry] = (),
        input_format: str = "text",
        detect: str = "auto",
    ) -> dict[str, Any]:
        """How `text` will be read, as plain data: what the `text` command prints."""
        fallbacks: list[Fallback] = [*self.lexicons.problems()]
        language, instead = understood(language)
        if instead is not None:
            fallbacks.append(Fallback("language", instead))
        languages = Languages(language, detect=detect)
        lexicon = self.lexicons.current().with_request(entries)
        cleaned = self.read(text, input_format, language, fallbacks.append)
        said = [piece.text for piece in self._said(cleaned, languages, lexicon)]
        segments = list(self.segments_of(cleaned, languages, fallbacks.append, lexicon))
        return {
            "text": text,
            "normalized": " ".join(said),
            "phonemes": " ".join(segment.phonemes for segment in segments),
            "words": [
                {
                    "text": word.text,
                    "start": word.start,
                    "end": word.end,
                    "phonemes": word.phonemes,
                    "language": word.language,
                    "source": word.source,
                    **({"style": asdict(style)} if style != PLAIN else {}),
                }
                for segment in segments
                for word, style in zip(segment.words, segment.styles or repeat(PLAIN), strict=False)
            ],
            "segments": [
                {
                    "segment_id": segment.segment_id,
                    "start": segment.start,
                    "end": segment.end,
                    "phonemes": segment.phonemes,
                    "token_count": len(segment.token_ids),
                    "pause_after_s": segment.pause_after_s,
                    **({} if segment.break_before_s is None else {"break_before_s": segment.break_before_s}),
                }
                for segment in segments
            ],
            "fallbacks": [asdict(fallback) for fallback in fallbacks],
        }

    def warm(self, language: str) -> None:
        """Load what `language` needs, so that the first request does not wait.

        The detector of languages is loaded too where every sentence needs it, which is not so in English.
        """
        language = resolve_language(language)
        list(self._pieces(AlignedText.of("xqzzyk"), Languages(language), self.lexicons.current()))
        normalise.warm(language)
        self.speakers.of(language)

    def _spoken(
        self,
        text: AlignedText,
        languages: Languages,
        on_fallback: OnFallback,
        lexicon: Lexicon,
        skipped: int,
    ) -> Iterator[SpokenSentence]:
        for number, sentence in enumerate(sentences(text, languages.base)):
            if number < skipped:
                continue
            words = self._words(sentence.text, languages, on_fallback, lexicon)
            if words and (sentence.ends_line or sentence.ends_paragraph):
                words[-1] = ended(words[-1])
            if words:
                ids = tuple(encode(word.phonemes) for word in words)
                yield SpokenSentence(tuple(words), ids, sentence.ends_paragraph, number)

    def _said(
        self, text: AlignedText | SsmlDocument, languages: Languages, lexicon: Lexicon
    ) -> Iterator[AlignedText]:
        """A text as it is said, in words, piece by piece."""

        def said(sentence: AlignedText, languages: Languages) -> list[AlignedText]:
            pieces = self._pieces(sentence, languages, lexicon)
            return [read_with(lexicon, piece, span.language)[0] for span, piece in pieces]

        if isinstance(text, AlignedText):
            for sentence in sentences(text, languages.base):
                yield from said(sentence.text, languages)
            return
        for sentence in marked.sentences_of(text, languages.base):
            told = replace(languages, forced=text.forced(sentence.text))
            whole = said(sentence.text, told)
            if marked.straddled(text, (span for p in whole for span in zip(p.starts, p.ends, strict=True))):
                whole = [piece for part in marked.parts(text, sentence.text) for piece in said(part, told)]
            yield from whole

    def _marked_words(
        self,
        document: SsmlDocument,
        languages: Languages,
        on_fallback: OnFallback,
        lexicon: Lexicon,
        sentence: AlignedText,
    ) -> list[Word]:
        """Words of a sentence of a document. Its parts are read one by one if one word would take up what is
        on both sides of a break: `5<break/>000` are two numbers. Otherwise words see their whole context."""
        told = replace(languages, forced=document.forced(sentence))
        fallbacks: list[Fallback] = []
        words = self._words(sentence, told, fallbacks.append, lexicon)
        if marked.straddled(document, ((word.start, word.end) for word in words)):
            fallbacks.clear()
            parts = marked.parts(document, sentence)
            words = [word for part in parts for word in self._words(part, told, fallbacks.append, lexicon)]
        for fallback in fallbacks:
            on_fallback(fallback)
        return words

    def _words(
        self, sentence: AlignedText, languages: Languages, on_fallback: OnFallback, lexicon: Lexicon
    ) -> list[Word]:
        """Words of a sentence, each piece of one language by its own G2P."""
        words: list[Word] = []
        for span, piece in self._pieces(sentence, languages, lexicon):
            if words:
                words[-1] = replace(words[-1], space_after=True)
            words += self._read(piece, span.language, languages, on_fallback, lexicon)
        return words

    def _pieces(
        self, sentence: AlignedText, languages: Languages, lexicon: Lexicon
    ) -> Iterator[tuple[LanguageSpan, AlignedText]]:
        # What the lexicon has in the request's language, names above all, is no sign of another one
        named = [
            (*sentence.span(*_whole_words(sentence.text, piece.start, piece.end)), languages.base)
            for piece in lexicon.find(sentence.text, languages.base)
        ]
        spans = language_spans(
            sentence,
            languages.base,
            accent=languages.accent,
            mode=languages.detect,
            forced=[*named, *languages.forced],
            known=self.speakers.known(languages.base),
        )
        for span in spans:
            piece = sentence.cut(span.start, span.end).strip()
            if len(piece):
                yield span, piece

    def _read(
        self,
        piece: AlignedText,
        language: str,
        languages: Languages,
        on_fallback: OnFallback,
        lexicon: Lexicon,
    ) -> list[Word]:
        """One piece by the G2P of its language, or from the cache, with the places of this text."""
        try:
            g2p = self.speakers.of(language)
        except (LanguageError, MemoryLimitError) as error:
            # Who asks for a language is told that it cannot be had; a word in passing is no reason to fail
            if language == languages.base or any(tag == language for _, _, tag in languages.forced):
                raise
            on_fallback(
                Fallback("language", f"read in {languages.base}: {error}", *piece.span(0, len(piece)))
            )
            language = languages.base
            g2p = self.speakers.of(language)
        cache = self.cache if languages.remembered else PhonemeCache(0)
        read = self._remembered(piece.text, language, g2p, lexicon, cache)
        for fallback in read.fallbacks:
            on_fallback(_moved(fallback, piece))
        return [_moved(word, piece) for word in read.words]

    def _remembered(
        self, text: str, language: str, g2p: GuardedG2P, lexicon: Lexicon, cache: PhonemeCache
    ) -> SentenceReading:
        """What `text` is read as, with places in `text` itself, so that it serves wherever `text` stands."""
        key = Key(language, lexicon.version, text)
        found = cache.get(key)
        if found is not None:
            return SentenceReading(list(found.words), list(found.fallbacks), lasting=True)
        said, given = read_with(lexicon, AlignedText.of(text), language)
        read = g2p.read(said, given)
        if read.lasting:
            cache.put(key, read.words, read.fallbacks)
        return read


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The range with what else is of the words at its ends, such as a possessive."""
    while start and (text[start - 1].isalpha() or text[start - 1] == "'"):
        start -= 1
    while end < len(text) and (text[end].isalpha() or text[end] == "'"):
        end += 1
    return start, end


Placed = TypeVar("Placed", Word, Fallback)


def _moved(item: Placed, piece: AlignedText) -> Placed:
    """From its place in the text of `piece` to that in the original."""
    if item.start is None or item.end is None:
        return item
    start, end = piece.span(item.start, item.end)
    return replace(item, start=start, end=end)
