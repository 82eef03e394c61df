"""Is every word understood, voice by voice and language by language, as listeners hear it?

The candidate is streamed, with a stream's gain, limiter and windows; the reference is the file of the same
text by the published fp32 model, run as one graph. Whisper transcribes both. In English it makes so few
errors that the rate itself has a limit; in other languages Whisper base makes so many that only the
difference of the two rates is judged.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.clips import WORST_COUNT, JudgedClip, Limits, Sound
from kokoro_lab.lab.fixtures import FixtureText, load_rows, spread, texts_of
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.gates.intelligibility import SIDES, error_percent, heard_of, rise, understood
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.metrics.intelligibility import (
    ENGLISH,
    LANGUAGES,
    Transcriber,
    listen,
    spelling_language,
    units,
    wrong_words,
)
from kokoro_lab.metrics.noninferiority import error_rate
from kokoro_lab.model.decoder import WholeGraph
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.parts import Parts
from kokoro_lab.weights.fetching import fetch
from kokoro_lab.weights.store import missing, model_path, model_sha256, voice_names
from kokoro_lab.weights.voices import LANGUAGE_OF_PREFIX, VoiceCache, load_voice

FIXTURE = "intelligibility"

ENGLISH_LIMIT_PERCENT = 4.0
"""Limit of the word error rate of all English voices together."""
ENGLISH_MARGIN_POINTS = 0.5
ENGLISH_RISE_CHECK = "en_word_error_rate_rise_upper_95_points"
ENOUGH_WORDS = 1000
"""With at least this many words, one word is at most a fifth of the margin, so the rate is judged. With
fewer, the number of misheard words is judged (`FEW_WORDS_MORE`)."""
FEW_WORDS_MORE = 1
"""How many more words than the reference's may be misheard, if there are fewer than `ENOUGH_WORDS`."""
OVER_MARGIN_POINTS = 0.6
"""How many percentage points more words than the reference's are lost in a control: a little more than
`ENGLISH_MARGIN_POINTS`."""
CLIP_LIMITS: Limits = {"more_word_errors_count": (None, None)}
OTHER_MARGIN_POINTS = 5.0
"""How many percentage points the word error rate may be above the reference's in languages other than
English. Between two precisions, Whisper hears one or two words of a hundred differently; broken speech loses
ten."""


class Reference(Protocol):
    """Whatever the candidate is compared with: an engine, or another program."""

    def synthesize(self, text: str, *, voice: str) -> Clip | Samples:
        """The whole text, spoken: a clip, or its samples at 24 kHz."""


PLAIN_WORDS = range(5, 26)
PLAIN_CHARACTERS = frozenset(string.ascii_letters + " ,;:.?!'’-")
CONTROL_TEXTS = 3
SWAPPED_S = 0.5
"""Length of the swapped spans of a control. It is longer than a word, so that words are heard in another
order."""


def published(config: EngineConfig) -> Engine:
    """An engine that runs the fp32 file as it was published, whole segments in one graph: the reference.

    Raises
    ------
    WeightsError
        The weights are not available.
    """
    config = replace(config, variant="fp32", stages=None)
    if missing(("fp32",), config.home):
        fetch(("fp32",), source=config.source, home=config.home)
    decoder = WholeGraph(model_path("fp32", config.home), config)
    voices = VoiceCache(lambda spec: load_voice(spec, config.home))
    return Engine(Parts(decoder, config, voices, model_sha256("fp32"), lambda: decoder.placement))


def voices_of(english: str, others: str) -> list[str]:
    """The voices that are named in `english` and then in `others`, separated by commas. `all` takes all
    voices of the languages whose words can be counted; an empty text takes none."""
    found = []
    for names, is_english in ((english, True), (others, False)):
        known = [name for name in voice_names() if _of_language(name, is_english)]
        found += known if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    return found


def _of_language(voice: str, is_english: bool) -> bool:
    language = LANGUAGE_OF_PREFIX[voice[0]].partition("-")[0]
    return language in LANGUAGES and (language == ENGLISH) == is_english


def sentences(language: str, limit: int = 0, corpus: str = "") -> list[FixtureText]:
    """Plain sentences of a language, without numbers and names, which Whisper often mishears.

    They come from the fixture `intelligibility`. If the file `corpus` is named, the English ones are the
    `plain` texts among its held-out lines. With a `limit` above 0, at most this number of them, spread over
    all.

    Raises
    ------
    ParameterError
        The fixtures have no such sentences.
    """
    language = spelling_language(language)
    if corpus and language == ENGLISH:
        found = plain(texts_of(corpus))
    else:
        rows = [row for row in load_rows(FIXTURE) if row["language"] == language]
        found = [FixtureText(row["id"], language, row["text"]) for row in rows]
    if not found:
        raise ParameterError("There is no plain sentence.", field="corpus", value=corpus or FIXTURE)
    return spread(found, limit)


def plain(texts: Sequence[FixtureText]) -> list[FixtureText]:
    """The English texts that can be written down in one way only, chosen before anything is heard.

    They have 5 to 25 words, no number (in digits or words), no capital letter but at the beginning and in
    "I", and no mark other than those between clauses.
    """

    def is_plain(text: str) -> bool:
        words = text.split()
        return (
            len(words) in PLAIN_WORDS
            and all(word == word.lower() or word.rstrip(",;:.") == "I" for word in words[1:])
            and not set(text) - PLAIN_CHARACTERS
            and not any(char.isdigit() for word in units(text) for char in word)
        )

    return [text for text in texts if is_plain(text.text)]


def measure(
    candidate: Engine,
    reference: Reference,
    voices: Sequence[str],
    recogniser: Transcriber,
    *,
    limit: int = 0,
    corpus: str = "",
    texts: Sequence[FixtureText] = (),
    sounds: dict[int, dict[str, Clip | Samples]] | None = None,
) -> pd.DataFrame:
    """Let candidate and reference speak the sentences of each voice's language, and Whisper write down both.

    If `texts` are given, every voice reads those.
    The samples of both sides of the worst clips are put into `sounds`, by the numbers of their rows; those of
    all clips would take a gigabyte.

    Returns
    -------
    pandas.DataFrame
        One row for each text and voice: text, language, voice, and what `intelligibility.understood` gives.
    """
    jobs = [
        (text, voice, spelling_language(candidate.voice(voice).language))
        for voice in voices
        for text in texts or sentences(candidate.voice(voice).language, limit, corpus)
    ]
    rows: list[dict[str, Any]] = []
    for text, voice, language in tqdm(jobs, desc="clips understood"):
        about = {"text": text.id, "language": language, "voice": voice}
        clips: dict[str, Clip | Samples] = {"candidate": streamed(candidate, text.text, voice)}
        clips["reference"] = reference.synthesize(text.text, voice=voice)
        if sounds is not None:
            sounds[len(rows)] = clips
        rows.append(about | understood(clips, text.text, recogniser, language))
        if sounds is not None and len(sounds) > WORST_COUNT:
            del sounds[min(sounds, key=lambda number: (_badness(rows[number]), -number))]
    return pd.DataFrame(rows)


def streamed(engine: Engine, text: str, voice: str) -> Clip:
    """A stream of `text`, joined into a clip."""
    return engine.stream(text, voice=voice, cached=False).joined()


def judge(table: pd.DataFrame) -> list[Check]:
    """The checks of each language, over all of its voices together.

    English: at most 4 % of the words wrong, and less than 0.5 points more than the reference with 95 %
    confidence. Fewer than 1000 words cannot show that; then at most one word more may be misheard than in the
    reference. Other languages: the counted rate is at most 5 points above the reference's. There are ten
    sentences, which suffice to find broken speech; their confidence limit is too wide to be judged, and is
    among the figures.
    """
    checks = []
    for language, rows in table.groupby("language", sort=False):
        if language != ENGLISH:
            name = f"{language}_word_error_rate_rise_points"
            checks.append(Check(name, 100 * rise(rows).value, high=OTHER_MARGIN_POINTS))
            continue
        rate = error_percent(rows, "word", "candidate")
        checks += [Check("en_word_error_rate_percent", rate, high=ENGLISH_LIMIT_PERCENT), no_worse(rows)]
    return checks


def no_worse(rows: pd.DataFrame) -> Check:
    """The check for English: the word error rate is less than 0.5 points above the reference's with 95 %
    confidence, or, with fewer than 1000 words, at most one word more is misheard."""
    if rows.words.sum() < ENOUGH_WORDS:
        more = int((rows.word_errors_candidate - rows.word_errors_reference).sum())
        return Check("en_words_more_misheard_count", more, high=FEW_WORDS_MORE)
    return Check(ENGLISH_RISE_CHECK, 100 * rise(rows).high, high=ENGLISH_MARGIN_POINTS)


def figures(table: pd.DataFrame) -> dict[str, float]:
    """Figures of each language and voice without a limit."""
    found: dict[str, float] = {"clips_count": len(table)}
    for column in ("language", "voice"):
        for name, rows in table.groupby(column, sort=False):
            found[f"{name}_words_count"] = int(rows.words.sum())
            for of in ("word", "character"):
                for side in SIDES:
                    found[f"{name}_{of}_error_rate_{side}_percent"] = error_percent(rows, of, side)
            risen = rise(rows)
            found[f"{name}_word_error_rate_rise_points"] = 100 * risen.value
            found[f"{name}_word_error_rate_rise_upper_95_points"] = 100 * risen.high
    return found


def rates(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each voice: words, word error rates of both sides in percent with their 95 % intervals, and
    character error rates."""
    found = []
    for (language, voice), rows in table.groupby(["language", "voice"], sort=False):
        row: dict[str, object] = {"language": language, "voice": voice, "words": int(rows.words.sum())}
        for side in SIDES:
            rate = error_rate(rows[f"word_errors_{side}"], rows.words, list(rows.text))
            row[f"{side}_percent"] = 100 * rate.value
            row[f"{side}_low"], row[f"{side}_high"] = 100 * rate.low, 100 * rate.high
            row[f"{side}_characters_percent"] = error_percent(rows, "character", side)
        found.append(row)
    return pd.DataFrame(found).set_index("voice")


def worst_words(table: pd.DataFrame) -> pd.DataFrame:
    """What was said and what was heard instead, the words that the candidate lost most often first.

    `candidate` and `reference` say how often; words that both lose are due to Whisper, or to the text.
    """
    wrong = [
        {"language": row.language, "said": word.said, "heard": word.heard, "side": side}
        for row in table.itertuples()
        for side in SIDES
        for word in wrong_words(row.said, getattr(row, f"heard_{side}"), row.language)
    ]
    columns = ["language", "said", "heard"]
    if not wrong:
        return pd.DataFrame(columns=[*columns, *SIDES])
    counts = pd.DataFrame(wrong).value_counts([*columns, "side"]).unstack(fill_value=0)
    found = counts.reindex(columns=list(SIDES), fill_value=0).reset_index()
    found.columns.name = None
    return found.sort_values([*SIDES, *columns], ascending=[False, True, True, True, True], ignore_index=True)


def judged_clips(table: pd.DataFrame, sounds: Mapping[int, Mapping[str, Clip | Samples]]) -> list[JudgedClip]:
    """Every clip; the worst lost the most words that the reference did not lose. `sounds` comes from
    `measure`."""
    found = []
    for number, row in table.iterrows():
        measured = {
            "more_word_errors_count": row.word_errors_candidate - row.word_errors_reference,
            "word_errors_candidate_count": row.word_errors_candidate,
            "word_errors_reference_count": row.word_errors_reference,
            "words_count": row.words,
        }
        candidate, reference = (partial(_sound, sounds, number, side) for side in ("candidate", "reference"))
        about = (f"{row.text}, {row.voice}", row.said, row.voice, row.language)
        found.append(JudgedClip(*about, measured, _badness(row), candidate, reference, heard_of(row)))
    return found


def _badness(row: Any) -> float:
    """How many more words the candidate lost than the reference; between equal clips, how many the candidate
    lost."""
    more = row["word_errors_candidate"] - row["word_errors_reference"]
    return float(more + row["word_errors_candidate"] / (row["word_errors_candidate"] + 1))


def _sound(sounds: Mapping[int, Mapping[str, Clip | Samples]], number: int, side: str) -> Sound:
    found = sounds[number][side]
    return Sound.of(found) if isinstance(found, Clip) else Sound(found)


def controls(
    table: pd.DataFrame,
    candidate: Engine,
    recogniser: Transcriber,
    judge: Callable[[pd.DataFrame], list[Check]] = judge,
) -> list[NegativeControl]:
    """Controls: clips that say other words than the text, on purpose. The same `judge` must refuse them, in
    every language.

    They are made from the clips of each language that were understood best; undamaged, these must pass.
    Damages that leave the words intelligible (a click, a gap of 100 ms, noise at 20 dB) are not for this
    gate. These clips are too few to be judged by the rate, so English has `loss_controls`, too.
    """
    faults: dict[str, Callable[[Clip, Clip], Samples]] = {
        "the longest word cut out of each clip": lambda clip, _: damages.without(
            clip.samples, damages.longest_word(clip.timings)
        ),
        "another text": lambda _, other: other.samples,
        "two pieces of half a second swapped": lambda clip, _: damages.swapped(clip.samples, SWAPPED_S),
    }
    found = []
    for language, rows in table.groupby("language", sort=False):
        best = rows.sort_values(["word_errors_candidate", "word_errors_reference", "words"], kind="stable")
        best, clips = _damageable(best.drop_duplicates("text"), candidate)
        found.append(NegativeControl(f"{language}: the untouched clips pass", caught=not failed(judge(best))))
        if language == ENGLISH:
            found += loss_controls(rows)
        pairs = list(zip(clips, [*clips[1:], *clips[:1]], strict=True))
        for name, fault in tqdm(faults.items(), desc=f"{language} faults"):
            errors = [
                listen(fault(*pair), SAMPLE_RATE_HZ, row.said, recogniser, language).errors
                for row, pair in zip(best.itertuples(), pairs, strict=True)
            ]
            damaged = best.assign(word_errors_candidate=[each.word_errors for each in errors])
            found.append(NegativeControl(f"{language}: {name}", caught=bool(failed(judge(damaged)))))
    return found


def _damageable(rows: pd.DataFrame, candidate: Engine) -> tuple[pd.DataFrame, list[Clip]]:
    """The first `CONTROL_TEXTS` of `rows` whose clips are long enough for every damage, and these clips."""
    found: dict[Hashable, Clip] = {}
    for at, row in rows.iterrows():
        clip = streamed(candidate, row.said, row.voice)
        if len(clip.samples) >= 3 * SWAPPED_S * SAMPLE_RATE_HZ:
            found[at] = clip
        if len(found) == CONTROL_TEXTS:
            break
    return rows.loc[list(found)], list(found.values())


def loss_controls(rows: pd.DataFrame) -> list[NegativeControl]:
    """Controls for `no_worse`, counted over all clips, so that the rate decides wherever it decides of the
    candidate: losses a little over the margin must fail. The reference as its own candidate is no fault, and
    must pass."""
    same = rows.assign(word_errors_candidate=rows.word_errors_reference)
    over = max(FEW_WORDS_MORE + 1, math.ceil(OVER_MARGIN_POINTS / 100 * rows.words.sum()))
    # Spread evenly over the clips
    more = np.diff(np.linspace(0, over, len(rows) + 1).astype(int))
    lost = same.assign(word_errors_candidate=same.word_errors_reference + more)
    return [
        NegativeControl("en: the reference's own words pass", caught=no_worse(same).passed),
        NegativeControl("en: a loss a little over the margin", caught=not no_worse(lost).passed),
    ]
