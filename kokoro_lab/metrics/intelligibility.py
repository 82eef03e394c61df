"""Word error rates by speech recognition (Whisper): how many words of a text are understood.

Whisper makes errors of its own, of names and of sounds that are spelled in two ways, so a rate says less by
itself than the difference of two recordings of the same words (`noninferiority.paired_rise`).

Text and transcript are brought to one spelling, so that only different words count. English has a normaliser
of its own; other languages lose their punctuation and capitals, no more. Japanese and Mandarin have no
spaces: their characters are counted. A kana in place of a kanji, or a character in place of another that
sounds the same, counts as an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import soxr

from kokoro_lab.engine_config import usable_cores
from kokoro_lab.errors import ParameterError, WeightsError
from kokoro_lab.extras import imported, require
from kokoro_lab.metrics.recordings import require_recording
from kokoro_lab.typed import require_choice

ENGLISH, MANDARIN = "en", "zh"
UNSPACED = ("ja", MANDARIN)
"""Languages without spaces, whose characters are counted."""
LANGUAGES = (ENGLISH, "es", "fr", "it", "pt", *UNSPACED)
"""Languages that Whisper base writes and this project speaks, without their countries. Hindi is not among
them: Whisper writes it in Urdu's letters, so that all words are wrong, and misspells most words if a prompt
makes it write Devanagari."""

# What the normaliser does not know: it splits don’t in two, takes … for a word, leaves out what stands in
# brackets, which is spoken all the same, and joins the numbers of "seven forty-five" but not those of 7:45
_PLAIN = str.maketrans({**dict.fromkeys("‘’ʼ", "'"), **dict.fromkeys("…()[]{}<>", " ")})
_HALF_OF_DAY = re.compile(r"(?<![a-z])([ap])\.?\s?m\b\.?", re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"\b(\d{1,2})(?::(\d\d)(?!\d)|\.(\d\d)(?=\s?[ap]m\b))", re.IGNORECASE)


def spelling_language(tag: str) -> str:
    """The language whose spelling a tag such as `en-gb` or `pt-br` asks for: `en`, `pt`.

    Raises
    ------
    ParameterError
        The words of this language cannot be counted.
    """
    language = tag.partition("-")[0]
    message = f"Words of {tag!r} cannot be counted."
    require_choice("language", language, LANGUAGES, message)
    return language


def units(text: str, language: str = ENGLISH) -> list[str]:
    """The words of a text in one spelling; for Japanese and Mandarin, the characters of the text.

    English: lower case, no punctuation, numbers in digits, contractions in full, American endings; "um" and
    its like are no words. Other languages: lower case, no punctuation, accents as they are; Mandarin in
    simplified characters.

    Source: Radford et al., "Robust speech recognition via large-scale weak supervision", 2022, appendix C,
    by `whisper_normalizer`.

    Raises
    ------
    ParameterError
        A language other than `LANGUAGES`, with or without a country.
    MissingExtra
        The extra `quality` is not installed, or for Mandarin `zh`.
    """
    language = spelling_language(language)
    plain = text.translate(_PLAIN)
    if language == ENGLISH:
        plain = _HALF_OF_DAY.sub(r"\1m", plain)
        plain = _TIME_OF_DAY.sub(r"\1\2\3", plain)
    words = _normaliser(language)(plain).split()
    return [*"".join(words)] if language in UNSPACED else words


def joined(parts: list[str], language: str = ENGLISH) -> str:
    """The parts that `units` returned, joined, with spaces if the language has them."""
    return ("" if spelling_language(language) in UNSPACED else " ").join(parts)


@cache
def _normaliser(language: str) -> Callable[[str], str]:
    if language == ENGLISH:
        normaliser = imported("whisper_normalizer.english", extra="quality").EnglishTextNormalizer()
    else:
        normaliser = imported("whisper_normalizer.basic", extra="quality").BasicTextNormalizer()
    if language == MANDARIN:  # Whisper writes some of it in traditional characters
        simplified = imported("proces", extra="zh").traditional_to_simplified
        return lambda text: str(normaliser(simplified(text)))
    return lambda text: str(normaliser(text))


Samples = npt.NDArray[np.float32]

WHISPER_RATE_HZ = 16_000
BEAM = 5
MODEL_FILES = ("config.json", "model.bin", "tokenizer.json", "vocabulary.txt")


class Transcriber(Protocol):
    """Transcribes recordings."""

    def transcribe(self, samples: Samples, sample_rate_hz: int, language: str = ENGLISH) -> str:
        """The words of a recording in a language, float32 mono; empty if there are none."""


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """The errors of a transcript against the spoken text.

    Parameters
    ----------
    words : int
        The number of words that were said.
    missed, replaced, added : int
        Words that were said and not heard, said and heard as other words, and heard but not said.
    characters, character_errors : int
        How many characters were said, spaces included, and the errors of all kinds in them.
    """

    words: int
    missed: int
    replaced: int
    added: int
    characters: int
    character_errors: int

    @property
    def word_errors(self) -> int:
        """Errors of all three kinds."""
        return self.missed + self.replaced + self.added


@dataclass(frozen=True, slots=True)
class Transcript:
    """The transcript of one recording, and its errors."""

    hypothesis: str
    errors: ErrorCount


class WrongWord(NamedTuple):
    """A word in one spelling, and what was heard instead. `heard` is empty if the word was missed, `said` if
    a word was added."""

    said: str
    heard: str


class Recogniser:
    """A `Transcriber`: Whisper base, loaded once (0.2 s, 320 MB); about 0.7 s for up to 30 s of speech.

    Source: Radford et al., "Robust speech recognition via large-scale weak supervision", 2022, by
    faster-whisper: weights in 8 bits, beam of 5, temperature 0, nothing carried from one 30 s window to the
    next. It gives the same words for the same samples each time.

    Parameters
    ----------
    folder : Path
        Whisper for CTranslate2: `weights.store.recogniser_path`. Nothing is downloaded here.
    threads : int
        Threads of one transcription; 0 takes every core.

    Raises
    ------
    WeightsError
        A file is missing in `folder`.
    ParameterError
        The extra `quality` is not installed.
    """

    def __init__(self, folder: Path, threads: int = 0) -> None:
        require("quality", "faster_whisper")
        lacking = [name for name in MODEL_FILES if not (folder / name).is_file()]
        if lacking:  # the library would look for them on the network
            raise WeightsError(
                f"The recogniser's folder {folder} lacks {', '.join(lacking)}.",
                field="recogniser",
                value=str(folder),
                mend="Run `kokoro-lab fetch --recogniser`.",
            )
        self._model = imported("faster_whisper", extra="quality").WhisperModel(
            str(folder),
            device="cpu",
            compute_type="int8",
            cpu_threads=threads or usable_cores(),
            local_files_only=True,
        )

    def transcribe(self, samples: Samples, sample_rate_hz: int, language: str = ENGLISH) -> str:
        """The words of a recording. Whisper is told the language, and does not guess it.

        Raises
        ------
        ParameterError
            No samples, more than one channel, samples that are not finite, or a language whose words cannot
            be counted.
        """
        require_recording(samples)
        heard = soxr.resample(samples, sample_rate_hz, WHISPER_RATE_HZ, quality="VHQ").astype(np.float32)
        segments, _ = self._model.transcribe(
            heard,
            language=spelling_language(language),
            beam_size=BEAM,
            temperature=0.0,
            condition_on_previous_text=False,
        )
        return " ".join(segment.text.strip() for segment in segments)


def listen(
    samples: Samples, sample_rate_hz: int, said: str, recogniser: Transcriber, language: str = ENGLISH
) -> Transcript:
    """Let `recogniser` write down a recording of the words `said`, and count its errors.

    Raises
    ------
    ParameterError
        In the cases in which `Recogniser.transcribe` or `count_errors` raises it.
    """
    hypothesis = recogniser.transcribe(samples, sample_rate_hz, language)
    return Transcript(hypothesis, count_errors(said, hypothesis, language))


def count_errors(said: str, hypothesis: str, language: str = ENGLISH) -> ErrorCount:
    """The fewest words, and characters, that must be changed to make one text of the other.

    Both texts are brought to one spelling first (`units`). Japanese and Mandarin put no spaces between words:
    their characters are counted as words.

    Source: Levenshtein 1966, by the `jiwer` package.

    Raises
    ------
    ParameterError
        Nothing was said, or the words of the language cannot be counted.
    MissingExtra
        The extra `quality` is not installed.
    """
    aligned, (reference, heard) = _aligned(said, hypothesis, language)
    jiwer = imported("jiwer", extra="quality")
    characters = jiwer.process_characters(joined(reference, language), joined(heard, language))
    return ErrorCount(
        words=aligned.hits + aligned.substitutions + aligned.deletions,
        missed=aligned.deletions,
        replaced=aligned.substitutions,
        added=aligned.insertions,
        characters=characters.hits + characters.substitutions + characters.deletions,
        character_errors=characters.substitutions + characters.deletions + characters.insertions,
    )


def wrong_words(said: str, hypothesis: str, language: str = ENGLISH) -> list[WrongWord]:
    """The errors that `count_errors` counts, one by one, in their order.

    Raises
    ------
    ParameterError
        In the cases in which `count_errors` raises it.
    """
    aligned, (reference, heard) = _aligned(said, hypothesis, language)
    found = []
    for run in aligned.alignments[0]:
        if run.type == "equal":
            continue
        before = reference[run.ref_start_idx : run.ref_end_idx]
        after = heard[run.hyp_start_idx : run.hyp_end_idx]
        found += [WrongWord(*pair) for pair in zip_longest(before, after, fillvalue="")]
    return found


def _aligned(said: str, hypothesis: str, language: str) -> tuple[Any, tuple[list[str], list[str]]]:
    """jiwer's alignment of two texts, and the units that it aligns."""
    jiwer = imported("jiwer", extra="quality")
    reference, heard = units(said, language), units(hypothesis, language)
    if not reference:
        raise ParameterError(
            "There are no words in the text, so none can be missed.",
            field="said",
            value=f"{len(said)} characters",
            allowed="a text with one word or more",
        )
    return jiwer.process_words(" ".join(reference), " ".join(heard)), (reference, heard)
