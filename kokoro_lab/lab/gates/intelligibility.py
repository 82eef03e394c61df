"""Are as many words of the candidate understood as of the reference? Whisper writes down each pair.

Whisper's errors in a single clip show little: it mishears names, and inaudible changes may alter them. So the
difference over all pairs is judged, with the same words by the same voices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.gates.speaking import SpokenPair, shortest
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.metrics.intelligibility import ENGLISH, MANDARIN, Recogniser, Transcriber, listen
from kokoro_lab.metrics.intervals import Estimate
from kokoro_lab.metrics.noninferiority import paired_rise
from kokoro_lab.weights.fetching import fetch
from kokoro_lab.weights.store import missing, recogniser_path

SIDES = ("candidate", "reference")
RISE_MARGIN_POINTS = 3.0
"""How much the word error rate may rise, in percentage points."""
RISE_CHECK = "machine_word_error_rate_rise_upper_95_points"
CONTROL_TEXTS = 3


def load_recogniser(config: EngineConfig | None = None) -> Recogniser:
    """Whisper base, fetched first if it is not in the cache; `config` is the environment's unless given.

    Raises
    ------
    WeightsError
        The recogniser's weights are not available.
    ParameterError
        The extra `quality` is not installed.
    """
    config = config or EngineConfig.from_settings()
    if missing((), config.home, recogniser=True):
        fetch((), recogniser=True, source=config.source, home=config.home)
    return Recogniser(recogniser_path(config.home), config.threads)


class Remembering:
    """A `Transcriber` that remembers its results, so that a reference is heard once for all of its
    candidates."""

    def __init__(self, recogniser: Transcriber) -> None:
        self._recogniser = recogniser
        self._known: dict[bytes, str] = {}

    def transcribe(self, samples: Samples, sample_rate_hz: int, language: str = ENGLISH) -> str:
        """The words in the samples: from memory if they were transcribed before, else from the recogniser."""
        key = hashlib.sha256(samples.tobytes() + f"{sample_rate_hz} {language}".encode()).digest()
        if key not in self._known:
            self._known[key] = self._recogniser.transcribe(samples, sample_rate_hz, language)
        return self._known[key]


def understood(
    clips: Mapping[str, Clip | Samples], said: str, recogniser: Transcriber, language: str = ENGLISH
) -> dict[str, object]:
    """The transcripts of the same words by the `candidate` and by the `reference`, with their errors.

    Returns
    -------
    dict
        `said`, the text; `words` and `characters`, how many it has; and for either side, such as `candidate`:
        `word_errors_candidate`, `character_errors_candidate` and `heard_candidate`, the transcript.
    """
    row: dict[str, object] = {"said": said}
    for side, clip in clips.items():
        samples = clip.samples if isinstance(clip, Clip) else clip
        found = listen(samples, SAMPLE_RATE_HZ, said, recogniser, language)
        row |= {"words": found.errors.words, "characters": found.errors.characters}
        row[f"word_errors_{side}"] = found.errors.word_errors
        row[f"character_errors_{side}"] = found.errors.character_errors
        row[f"heard_{side}"] = found.hypothesis
    return row


def heard_of(row: pd.Series) -> dict[str, str]:
    """The transcripts in a row of `understood`, as notes of a clip."""
    return {f"heard of the {side}": str(row[f"heard_{side}"]) for side in SIDES}


def error_percent(table: pd.DataFrame, of: str, side: str) -> float:
    """Errors of all rows divided by the number of words or characters (`of`) of their texts, in percent. It
    is a ratio of sums and not a mean of rates."""
    return 100 * float(table[f"{of}_errors_{side}"].sum() / table[f"{of}s"].sum())


def rise(table: pd.DataFrame) -> Estimate:
    """How much more often the candidate's words are misheard than the reference's, with the interval over
    texts."""
    return paired_rise(
        table.word_errors_reference, table.word_errors_candidate, table.words, list(table.text)
    )


def measure(spoken: Sequence[SpokenPair], recogniser: Transcriber) -> pd.DataFrame:
    """Whisper's transcripts of each pair: one row for each pair, indexed by its name, with text, voice, and
    the columns of `understood`."""
    rows = []
    for each in tqdm(spoken, desc="word errors"):
        clips = {side: getattr(each.pair, side) for side in SIDES}
        about = {"pair": each.pair.name, "text": each.text, "voice": each.voice}
        language = MANDARIN if each.voice.startswith("z") else ENGLISH
        rows.append(about | understood(clips, each.said, recogniser, language))
    return pd.DataFrame(rows).set_index("pair")


def judge(table: pd.DataFrame) -> list[Check]:
    """The check: the word error rate rises by less than 3 points with 95 % confidence."""
    return [Check(RISE_CHECK, 100 * rise(table).high, high=RISE_MARGIN_POINTS)]


def figures(table: pd.DataFrame) -> dict[str, float]:
    """Whisper's figures without a limit. Rates are errors of all pairs ÷ their words."""
    found: dict[str, float] = {
        "machine_words_count": int(table.words.sum()),
        "machine_word_error_rate_rise_points": 100 * rise(table).value,
    }
    for of in ("word", "character"):
        for side in ("reference", "candidate"):
            found[f"machine_{of}_error_rate_{side}_percent"] = error_percent(table, of, side)
    return found | {"machine_word_errors_added_in_a_pair_most_count": int(_more(table).max())}


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """The pairs with different transcripts, those that lost most words first."""
    differ = table[table.heard_reference != table.heard_candidate]
    return differ.assign(errors_more=_more(differ)).sort_values("errors_more", ascending=False)[
        ["errors_more", "words", "said", "heard_reference", "heard_candidate"]
    ]


def controls(spoken: Sequence[SpokenPair], recogniser: Transcriber) -> list[NegativeControl]:
    """Candidates that say other words on purpose; the judge must refuse them.

    They are made of the shortest pairs, one for each text. The first control has no fault: the reference as
    its own candidate must pass.
    """
    short = shortest(spoken, CONTROL_TEXTS)
    another = dict(zip((e.text for e in short), [*short[1:], short[0]], strict=True))
    candidates: dict[str, Callable[[SpokenPair], Samples]] = {
        "the words of the reference itself pass": lambda each: each.pair.reference,
        "one word cut out of each clip is missed": lambda each: damages.without(
            each.pair.reference, each.longest_word
        ),
        "another text is not the same words": lambda each: another[each.text].pair.reference,
    }
    found = []
    for number, (name, candidate) in enumerate(candidates.items()):
        pairs = [e._replace(pair=replace(e.pair, candidate=candidate(e))) for e in short]
        refused = bool(failed(judge(measure(pairs, recogniser))))
        found.append(NegativeControl(name, caught=refused if number else not refused))
    return found


def _more(table: pd.DataFrame) -> pd.Series:
    return table.word_errors_candidate - table.word_errors_reference
