"""How many words of a text are understood, by a program that writes down what it hears.

Whisper makes errors of its own, of names and of sounds that are spelled in two ways, so a rate says less by
itself than the difference of two recordings of the same words (`noninferiority.paired_rise`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import soxr

from kokoro_lab.config import usable_cores
from kokoro_lab.errors import ParameterError, WeightsError

Samples = npt.NDArray[np.float32]

WHISPER_RATE_HZ = 16_000
LANGUAGE = "en"
"""The normaliser that makes spellings and numbers comparable knows English alone."""
BEAM = 5
MODEL_FILES = ("config.json", "model.bin", "tokenizer.json", "vocabulary.txt")

# What the normaliser does not know: it splits don’t in two, takes … for a word, leaves out what stands in
# brackets, which is spoken all the same, and joins the numbers of "seven forty-five" but not those of 7:45
_PLAIN = str.maketrans({**dict.fromkeys("‘’ʼ", "'"), **dict.fromkeys("…()[]{}<>", " ")})
_HALF_OF_DAY = re.compile(r"(?<![a-z])([ap])\.?\s?m\b\.?", re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"\b(\d{1,2})(?::(\d\d)(?!\d)|\.(\d\d)(?=\s?[ap]m\b))", re.IGNORECASE)


class Transcriber(Protocol):
    """Writes down what it hears."""

    def transcribe(self, samples: Samples, sample_rate_hz: int) -> str:
        """The words of a recording, float32 mono; empty if there are none."""


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """What was heard against what was said.

    Parameters
    ----------
    words : int
        How many were said.
    missed, replaced, added : int
        Words that were said and not heard, heard as others, and heard but not said.
    characters, character_errors : int
        The same by characters, spaces included, all kinds of errors together.
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

    @property
    def word_error_rate(self) -> float:
        """Errors ÷ words said: 0 is best, and over 1 if more was added than said."""
        return self.word_errors / self.words

    @property
    def character_error_rate(self) -> float:
        """As `word_error_rate`, by characters: a word that is nearly right counts less."""
        return self.character_errors / self.characters


@dataclass(frozen=True, slots=True)
class Heard:
    """One recording: what was written down, and how many errors that makes."""

    hypothesis: str
    errors: ErrorCount


class Recogniser:
    """A `Transcriber`: Whisper base, loaded once (0.2 s, 320 MB); about 0.7 s for up to 30 s of speech.

    Source: Radford et al., "Robust speech recognition via large-scale weak supervision", 2022, by
    faster-whisper: weights in 8 bits, beam of 5, temperature 0, nothing carried from one 30 s window to the
    next. It gives the same words for the same samples each time.

    Parameters
    ----------
    folder : Path
        Whisper for CTranslate2: `model.weights.recogniser_path`. Nothing is downloaded here.
    threads : int
        Of one transcription; 0 takes every core.

    Raises
    ------
    WeightsError
        A file is missing in `folder`.
    ParameterError
        The extra `quality` is not installed.
    """

    def __init__(self, folder: Path, threads: int = 0) -> None:
        _require("faster_whisper")
        lacking = [name for name in MODEL_FILES if not (folder / name).is_file()]
        if lacking:  # the library would look for them on the network
            raise WeightsError(
                f"The recogniser's folder {folder} lacks {', '.join(lacking)}.",
                field="recogniser",
                value=str(folder),
                mend="Run `kokoro-lab fetch --recogniser`.",
            )
        from faster_whisper import WhisperModel

        self._model = WhisperModel(
            str(folder),
            device="cpu",
            compute_type="int8",
            cpu_threads=threads or usable_cores(),
            local_files_only=True,
        )

    def transcribe(self, samples: Samples, sample_rate_hz: int) -> str:
        """The words of a recording.

        Raises
        ------
        ParameterError
            No samples, more than one channel, or samples that are not finite.
        """
        if samples.ndim != 1 or not len(samples) or not np.isfinite(samples).all():
            raise ParameterError(
                "Only a mono recording of finite samples can be understood.",
                field="samples",
                value=f"shape {samples.shape}",
                allowed="float32 of shape (n,), n > 0, all finite",
            )
        heard = soxr.resample(samples, sample_rate_hz, WHISPER_RATE_HZ, quality="VHQ").astype(np.float32)
        segments, _ = self._model.transcribe(
            heard,
            language=LANGUAGE,
            beam_size=BEAM,
            temperature=0.0,
            condition_on_previous_text=False,
        )
        return " ".join(segment.text.strip() for segment in segments)


def listen(samples: Samples, sample_rate_hz: int, said: str, recogniser: Transcriber) -> Heard:
    """Let `recogniser` write down a recording of the words `said`, and count its errors.

    Raises
    ------
    ParameterError
        As `Recogniser.transcribe` and `count_errors`.
    """
    hypothesis = recogniser.transcribe(samples, sample_rate_hz)
    return Heard(hypothesis, count_errors(said, hypothesis))


def count_errors(said: str, hypothesis: str) -> ErrorCount:
    """The fewest words, and characters, that must be changed to make one text of the other.

    Both are brought to one spelling first: lower case, no punctuation, numbers in digits, contractions in
    full, American endings; "um" and its like are no words.

    Source: Levenshtein 1966, by the `jiwer` package; the spelling is that of Radford et al. 2022,
    appendix C, by `whisper_normalizer`.

    Raises
    ------
    ParameterError
        Nothing was said, or the extra `quality` is not installed.
    """
    _require("jiwer", "whisper_normalizer")
    import jiwer

    reference, heard = (_in_one_spelling(text) for text in (said, hypothesis))
    if not reference:
        raise ParameterError(
            "There are no words in the text, so none can be missed.",
            field="said",
            value=f"{len(said)} characters",
            allowed="a text with one word or more",
        )
    words = jiwer.process_words(reference, heard)
    characters = jiwer.process_characters(reference, heard)
    return ErrorCount(
        words=words.hits + words.substitutions + words.deletions,
        missed=words.deletions,
        replaced=words.substitutions,
        added=words.insertions,
        characters=characters.hits + characters.substitutions + characters.deletions,
        character_errors=characters.substitutions + characters.deletions + characters.insertions,
    )


def total(counts: Iterable[ErrorCount]) -> ErrorCount:
    """All recordings as one: its rate is the sum of errors over the sum of words, not a mean of rates.

    Raises
    ------
    ParameterError
        There is none.
    """
    rows = [(c.words, c.missed, c.replaced, c.added, c.characters, c.character_errors) for c in counts]
    if not rows:
        raise ParameterError("Nothing was heard.", field="counts", value=0, allowed="one recording or more")
    return ErrorCount(*(sum(column) for column in zip(*rows, strict=True)))


def _in_one_spelling(text: str) -> str:
    text = _HALF_OF_DAY.sub(r"\1m", text.translate(_PLAIN))
    return _normaliser()(_TIME_OF_DAY.sub(r"\1\2\3", text)).strip()


@cache
def _normaliser() -> Callable[[str], str]:
    from whisper_normalizer.english import EnglishTextNormalizer

    normaliser: Any = EnglishTextNormalizer()
    return lambda text: str(normaliser(text))


def _require(*modules: str) -> None:
    """Raise ParameterError, with the mend, unless all of the modules are installed."""
    lacking = [name for name in modules if find_spec(name) is None]
    if lacking:
        raise ParameterError(
            f"Word errors cannot be counted: {', '.join(lacking)} is not installed.",
            field="metric",
            value="word error rate",
            mend="Install the extra: pip install 'kokoro-lab[quality]'.",
        )
