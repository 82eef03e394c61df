"""Turns any text into segments, each of which is made when it is asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

from kokoro_lab.datatypes import PLAIN, Fallback, LexiconEntry, Place, Segment, Word
from kokoro_lab.errors import LanguageError, MemoryLimitError
from kokoro_lab.g2p import marked
from kokoro_lab.g2p.guarded import GuardedG2P, SentenceReading
from kokoro_lab.g2p.lexicon import Lexicon, read_with
from kokoro_lab.g2p.lexicon_entries import from_ipa
from kokoro_lab.g2p.lexicons import Lexicons
from kokoro_lab.g2p.phoneme_cache import Key, PhonemeCache
from kokoro_lab.g2p.protocol import FixedReading, OnFallback, Readings
from kokoro_lab.g2p.read_sentences import ReadSentences
from kokoro_lab.g2p.speakers import Speakers
from kokoro_lab.g2p.vocab import symbols
from kokoro_lab.text import hyphens, normalise
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.growing import GrowingText, ReadAhead
from kokoro_lab.text.language import resolve_language, understood
from kokoro_lab.text.marks import unmarked
from kokoro_lab.text.normalise import pasted
from kokoro_lab.text.normalise.pictographs import without_emoji
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.segment import SpokenSentences, ended, pack
from kokoro_lab.text.sentences import Sentences, sentences
from kokoro_lab.text.spans import Forced, LanguageSpan, language_spans
from kokoro_lab.text.ssml import Outside, SsmlDocument, parse, parse_inline
from kokoro_lab.weights.voices import language_of


@dataclass(frozen=True, slots=True)
class Languages:
    """What the request and the document say about the languages of a text.

    Parameters
    ----------
    base : str
        The language of the request; a canonical tag.
    accent : str, optional
        The voice's own language. It decides whether English is American or British, if the request does not.
    detect : {"auto", "scripts", "off"}
        How words of other languages are found; see `kokoro_lab.text.spans`.
    forced : sequence of (start, end, language)
        Languages that the text itself names (`xml:lang`), as ranges of the original text; inner ranges come
        after the outer ones.
    remembered : bool
        Whether phonemes may be taken from the cache and kept there.
    """

    base: str
    accent: str | None = None
    detect: str = "auto"
    forced: Forced = ()
    remembered: bool = True


@dataclass(slots=True)
class FrontEnd:
    """Makes segments of text: sanitation, sentences, languages, lexicon, normalisation, G2P and packing.
    Thread-safe.

    Parameters
    ----------
    lexicons : Lexicons
        The lexicons; by default, those that the environment names.
    speakers : Speakers
        The G2P of each language.
    cache : PhonemeCache
        Cache of sentences that were read before.
    """

    lexicons: Lexicons = field(default_factory=Lexicons.from_settings)
    speakers: Speakers = field(default_factory=Speakers)
    cache: PhonemeCache = field(default_factory=PhonemeCache)

    def cleaned(self, text: str, on_fallback: OnFallback = lambda _: None) -> AlignedText:
        """The text without characters that are not spoken, with offsets into the original text.

        Raises
        ------
        TextError
            The text is not a string, or looks like the bytes of a file.
        """
        return sanitise(text, on_fallback).strip()

    def segments(self, text: str, language: str, on_fallback: OnFallback) -> Iterator[Segment]:
        """Segments of `text`, each made when it is asked for; no segments if there is nothing to speak."""
        return self.segments_of(self.cleaned(text, on_fallback), resolve_language(language), on_fallback)

    def read(
        self,
        text: str,
        input_format: str,
        language: str,
        on_fallback: OnFallback = lambda _: None,
        *,
        code: str = "skip",
        emoji: str = "name",
        language_of: Callable[[str], str] = language_of,
    ) -> AlignedText | SsmlDocument:
        """The input of `segments_of`: the cleaned text or, for SSML and Markdown, the parsed document.

        `code` and `emoji` are those of `Utterance`; `language_of` knows the languages of voices.

        Raises
        ------
        TextError
            The text is not a string, looks like the bytes of a file, or is SSML beyond the supported subset
            (`SsmlError`).
        """
        found: AlignedText | SsmlDocument
        outside = Outside(from_ipa, lambda voice: resolve_language(language_of(voice)))
        match input_format:
            case "ssml":
                found = parse(text, language, on_fallback, outside)
            case "marked":
                found = parse_inline(text, language, on_fallback, outside)
            case "markdown":
                from kokoro_lab.text import markdown

                found = markdown.parse(text, language, code)
            case _:
                found = self.cleaned(text, on_fallback)
        return _without_emoji(found) if emoji == "skip" else found

    def read_as_written(
        self, text: GrowingText, language: str, note: OnFallback, *, code: str = "skip", emoji: str = "name"
    ) -> AlignedText | SsmlDocument:
        """The document of a Markdown text that is still being written."""
        from kokoro_lab.text import markdown

        found = markdown.written(text, language, code, note)
        return _without_emoji(found) if emoji == "skip" else found

    def segments_of(
        self,
        text: AlignedText | GrowingText | SsmlDocument,
        language: str | Languages,
        on_fallback: OnFallback,
        lexicon: Lexicon | None = None,
        place: Place | None = None,
    ) -> Iterator[Segment]:
        """Segments of a cleaned text; `lexicon` replaces the current one.

        With a `place`, the segments begin with its sentence: earlier sentences are counted, but not read.
        """
        languages = Languages(language) if isinstance(language, str) else language
        reader = self._reader(languages, on_fallback, lexicon)
        place = place or Place()
        space_id = symbols()[" "]
        if not isinstance(text, SsmlDocument):
            ahead = ReadAhead(text) if isinstance(text, AlignedText) else text
            found = Sentences(ahead, languages.base)
            read = ReadSentences(reader.unmarked_words, on_fallback, found, place.sentence)
            return pack(read, space_id=space_id, language=languages.base, first_id=place.first_segment_id)
        for fallback in text.fallbacks:
            on_fallback(fallback)
        # A document's breaks and styles are counted from its beginning, so reading always begins there
        spoken = SpokenSentences(marked.spoken(text, languages.base, partial(reader.marked_words, text)))
        return marked.styled(pack(spoken, space_id=space_id, language=languages.base), text)

    def _reader(self, languages: Languages, on_fallback: OnFallback, lexicon: Lexicon | None) -> _TextReader:
        cache = self.cache if languages.remembered else PhonemeCache(0)
        return _TextReader(self.speakers, cache, languages, lexicon or self.lexicons.current(), on_fallback)

    def describe(
        self,
        text: str,
        language: str,
        entries: Sequence[LexiconEntry] = (),
        input_format: str = "text",
        detect: str = "auto",
        *,
        code: str = "skip",
        emoji: str = "name",
    ) -> dict[str, Any]:
        """How `text` will be read, as plain data that the command `text` prints."""
        fallbacks: list[Fallback] = [*self.lexicons.problems()]
        language, instead = understood(language)
        if instead is not None:
            fallbacks.append(Fallback("language", instead))
        languages = Languages(language, detect=detect)
        lexicon = self.lexicons.current().with_request(entries)
        cleaned = self.read(text, input_format, language, fallbacks.append, code=code, emoji=emoji)
        said = [run.text for run in self._reader(languages, fallbacks.append, lexicon).said(cleaned)]
        segments = list(self.segments_of(cleaned, languages, fallbacks.append, lexicon))
        return {
            "text": text,
            "normalized": " ".join(said),
            "phonemes": " ".join(segment.phonemes for segment in segments),
            "words": [
                {name: getattr(word, name) for name in _WORD_FIELDS}
                | ({"style": asdict(style)} if style != PLAIN else {})
                for segment in segments
                for word, style in zip(segment.words, segment.styles or repeat(PLAIN), strict=False)
            ],
            "segments": [
                {name: getattr(segment, name) for name in ("segment_id", "start", "end", "phonemes")}
                | {"token_count": len(segment.token_ids), "pause_after_s": segment.pause_after_s}
                | {name: value for name in _ASKED_FIELDS if (value := getattr(segment, name)) is not None}
                for segment in segments
            ],
            "fallbacks": [asdict(fallback) for fallback in fallbacks],
        }

    def warm(self, language: str) -> None:
        """Load what `language` needs, so that the first request does not wait."""
        language = resolve_language(language)
        list(self._reader(Languages(language), lambda _: None, None).runs(AlignedText.of("xqzzyk")))
        normalise.warm(language)
        self.speakers.of(language)


def _without_emoji(found: AlignedText | SsmlDocument) -> AlignedText | SsmlDocument:
    if isinstance(found, AlignedText):
        return without_emoji(found).strip()
    passages = (each._replace(text=without_emoji(each.text).strip()) for each in found.passages)
    kept = (each for each in passages if len(each.text))
    return replace(found, passages=tuple(kept) if isinstance(found.passages, tuple) else kept)


LEFT_OUT = "left out: the sign of a note, or the time of a subtitle"
_WORD_FIELDS = ("text", "start", "end", "phonemes", "language", "source")
_ASKED_FIELDS = ("break_before_s", "voice")
"""Fields of a segment that are set only if the input is a document (SSML or Markdown)."""


@dataclass(frozen=True, slots=True)
class _TextReader:
    """Reads the sentences of one text."""

    speakers: Speakers
    cache: PhonemeCache
    languages: Languages
    lexicon: Lexicon
    on_fallback: OnFallback
    readings: Sequence[tuple[int, int, str]] = ()
    """Readings that the document gives: starts and ends in the original text, and phonemes."""

    def said(self, text: AlignedText | SsmlDocument) -> Iterator[AlignedText]:
        """The text in spoken words, run by run."""
        if isinstance(text, AlignedText):
            for sentence in sentences(text, self.languages.base):
                for part in unmarked(
                    sentence.text, self.languages.base, begins_line=sentence.begins_line
                ).parts:
                    yield from self._normalised(part)
            return
        for sentence in marked.sentences_of(text, self.languages.base):
            reader = self._forced(text, sentence.text)
            whole = reader._normalised(sentence.text)
            if marked.straddled(text, (span for p in whole for span in zip(p.starts, p.ends, strict=True))):
                parts = marked.parts(text, sentence.text)
                whole = [run for part in parts for run in reader._normalised(part)]
            yield from whole

    def _normalised(self, sentence: AlignedText) -> list[AlignedText]:
        return [
            read_with(self.lexicon, run, span.language, self._given(run))[0]
            for span, run in self.runs(sentence)
        ]

    def _given(self, run: AlignedText) -> Readings:
        """The readings that the document states for parts of a run."""
        ranges = ((*run.range_of(start, end), phonemes) for start, end, phonemes in self.readings)
        return tuple(FixedReading(i, j, phonemes) for i, j, phonemes in ranges if i < j)

    def _forced(self, document: SsmlDocument, sentence: AlignedText) -> _TextReader:
        """A reader for one sentence, with the languages and readings that the document gives there."""
        languages = replace(self.languages, forced=document.forced(sentence))
        first, last = (
            bisect_left(document.readings, (offset,)) for offset in (sentence.starts[0], sentence.ends[-1])
        )
        turn = document.turns.at(sentence.starts[0], sentence.ends[-1])
        if turn is not None:
            languages = replace(languages, base=turn.language, accent=turn.language)
        return replace(self, languages=languages, readings=document.readings[first:last])

    def marked_words(self, document: SsmlDocument, sentence: AlignedText) -> list[Word]:
        """Words of a sentence of a document. If a break divides what would be one word, the parts are read
        one by one: `5<break/>000` is two numbers. Otherwise each word is read in the context of the whole
        sentence."""
        fallbacks: list[Fallback] = []
        reader = replace(self._forced(document, sentence), on_fallback=fallbacks.append)
        words = reader.words(sentence)
        if marked.straddled(document, ((word.start, word.end) for word in words)):
            fallbacks.clear()
            words = [word for part in marked.parts(document, sentence) for word in reader.words(part)]
        for fallback in fallbacks:
            self.on_fallback(fallback)
        return words

    def unmarked_words(self, sentence: AlignedText, begins_line: bool, on_fallback: OnFallback) -> list[Word]:
        """Words of a sentence of a plain text, without marks of Markdown and HTML. The text between two
        borders made by such marks is read by itself. `on_fallback` is called for each fallback."""
        words: list[Word] = []
        found = unmarked(sentence, self.languages.base, begins_line=begins_line)
        reader = replace(self, on_fallback=on_fallback)
        for part in found.parts:
            if words:
                words[-1] = ended(replace(words[-1], space_after=True))
            words += reader.words(part)
        for fallback in found.fallbacks:
            on_fallback(fallback)
        return words

    def words(self, sentence: AlignedText) -> list[Word]:
        """The words of a sentence. The G2P of a language reads each run of words in that language."""
        words: list[Word] = []
        for span, run in self.runs(sentence):
            if words:
                words[-1] = replace(words[-1], space_after=True)
            words += self._read(run, span.language)
        return words

    def runs(self, sentence: AlignedText) -> Iterator[tuple[LanguageSpan, AlignedText]]:
        """The runs of a sentence, each in one language, with its span."""
        base = self.languages.base
        known = self.speakers.known(base)
        sentence = hyphens.joined(sentence, base, known)
        # Words in the lexicon of the request's language, names above all, are no sign of another language
        named = [
            (*sentence.span(*_whole_words(sentence.text, fixed.start, fixed.end)), base)
            for fixed in self.lexicon.find(sentence.text, base)
        ]
        spans = language_spans(
            sentence,
            base,
            accent=self.languages.accent,
            mode=self.languages.detect,
            forced=[*named, *self.languages.forced],
            known=known,
        )
        for span in spans:
            run = sentence.cut(span.start, span.end).strip()
            if len(run):
                yield span, run

    def _read(self, run: AlignedText, language: str) -> list[Word]:
        """The words of one run, by the G2P of its language or from the cache, with offsets into the
        original."""
        base = self.languages.base
        try:
            g2p = self.speakers.of(language)
        except (LanguageError, MemoryLimitError) as error:
            # A language that the request names must be available; a single foreign word may fall back
            if language == base or any(tag == language for _, _, tag in self.languages.forced):
                raise
            self.on_fallback(Fallback("language", f"read in {base}: {error}", *run.span(0, len(run))))
            language = base
            g2p = self.speakers.of(language)
        reading = self._remembered(run.text, language, g2p, self._given(run))
        for fallback in reading.fallbacks:
            self.on_fallback(_moved(fallback, run))
        return [_moved(word, run) for word in reading.words]

    def _remembered(self, text: str, language: str, g2p: GuardedG2P, fixed: Readings) -> SentenceReading:
        """The words of `text`, with offsets into `text` itself, so that the entry fits wherever `text`
        stands."""
        key = Key(language, self.lexicon.version, text, fixed)
        found = self.cache.get(key)
        if found is not None:
            return found
        said, given = read_with(self.lexicon, AlignedText.of(text), language, fixed)
        reading = g2p.read(said, given)
        reading.fallbacks.extend(Fallback("text", LEFT_OUT, *span) for span in pasted.left_out(text, said))
        if reading.lasting:
            self.cache.put(key, reading)
        return reading


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The range, made wider so that it ends at the borders of words: a possessive `'s` becomes part of it."""
    while start and (text[start - 1].isalpha() or text[start - 1] == "'"):
        start -= 1
    while end < len(text) and (text[end].isalpha() or text[end] == "'"):
        end += 1
    return start, end


PlacedItem = TypeVar("PlacedItem", Word, Fallback)


def _moved(item: PlacedItem, run: AlignedText) -> PlacedItem:
    """The word or fallback, with its offsets in `run` changed to offsets in the original text."""
    if item.start is None or item.end is None:
        return item
    start, end = run.span(item.start, item.end)
    return replace(item, start=start, end=end)
