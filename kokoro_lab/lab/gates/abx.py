"""Does a candidate precision sound like the reference? A program judges the sounds of a listening test.

The program, the *machine listener*, judges the same pairs of sounds that people hear there. It uses distances
in a perceptual space, and DNSMOS, a model of listeners. Its verdict is no mean opinion score of people, and
does not replace an ABX test (`kokoro_lab.lab.listening`); it finds early the candidates that need no
listening test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.signal import butter, sosfilt

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.dsp import Dither
from kokoro_lab.dsp.dither import PCM_MAX
from kokoro_lab.lab.bars import quiet, tqdm
from kokoro_lab.lab.clips import JudgedClip, Limits
from kokoro_lab.lab.fixtures import FixtureText, require_known, spread, texts_of
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.gates.forced import ToldGraph, fp32_prosody, told_stages
from kokoro_lab.lab.gates.intelligibility import heard_of
from kokoro_lab.lab.gates.speaking import SpokenPair, begun, pair_up, shortest, speak
from kokoro_lab.lab.listening.plan import LEAST_CATCHES, PassagePair, match_loudness
from kokoro_lab.lab.listening.result import ListeningResult
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.metrics.abx import INAUDIBLE_BELOW, LEAST_LISTENERS, trials_to_show
from kokoro_lab.metrics.intervals import ALPHA, Estimate
from kokoro_lab.metrics.mos import dnsmos
from kokoro_lab.metrics.noninferiority import paired_change
from kokoro_lab.metrics.perceptual import log_mel_distance_db
from kokoro_lab.model.decoder import Decoder, StagedDecoder
from kokoro_lab.speech.engine import Engine, load_engine
from kokoro_lab.weights.store import model_path

SHARED, OWN = "shared", "own"
"""The durations and pitch with which a variant speaks: the fp32 model's, or its own."""
LONGEST_CHARACTERS = 140
"""The longest text that a listener can remember while comparing."""

DITHERED, NOISY = "16-bit dither", "noise at 20 dB SNR"
"""The anchors: the reference under a change that nobody hears, and under one that everybody does."""

DNSMOS_MARGIN_PERCENT = -3.0
POSITION_HIGH = 0.75
"""The highest allowed `position` of the candidate. It is the candidate's distance from the reference on a
logarithmic scale, on which the inaudible anchor has 0 and the audible one has 1. White noise 40 dB below the
speech, a hiss in the pauses, lies at 0.77; upstream's int8 at 0.68, fp16 at 0.53."""
RESIDUAL_LU = 0.1
CONTROL_PAIRS, CONTROL_S = 3, 3.01
"""How many pairs controls are made from, and how many seconds of each. DNSMOS repeats a short clip until it
has 9.01 s, and three times 3.01 s are just enough."""

DNSMOS_CHECK = "machine_dnsmos_change_lower_95_percent"
POSITION_CHECK = "machine_log_mel_position_median"
DURATION_CHECK = "duration_difference_most_s"
RESIDUAL_CHECK = "loudness_residual_most_lu"

CLIP_GUIDES: Limits = {
    "log_mel_position": (None, POSITION_HIGH),
    "dnsmos_change_percent": (DNSMOS_MARGIN_PERCENT, None),
}
"""Lines in plots. A single pair beyond one of them is worth listening to. The limits that decide are on
median and mean."""

PAIRS, SEED = 10, 1
"""Number of pairs in a listening test, and the seed of their order."""

QUALITY, DISTANCE = "quality", "distance"
"""Measurements of a pair besides its length and loudness: DNSMOS's rating, and log-mel distances."""


def short_texts(which: str = "", corpus: str = "") -> list[FixtureText]:
    """Texts that are short enough to be compared: the fixtures', or the held-out lines of the file `corpus`.

    Parameters
    ----------
    which : str
        A number of texts, which are then spread over all; or kinds of texts, separated by commas. Empty takes
        all.

    Raises
    ------
    ParameterError
        There is no such kind, or none of its texts is short enough.
    """
    texts = [text for text in texts_of(corpus) if len(text.text) <= LONGEST_CHARACTERS]
    if not which or which.isdecimal():
        return spread(texts, int(which or 0))
    there, wanted = sorted({text.kind for text in texts}), which.split(",")
    for kind in wanted:
        require_known("short text of the kind", kind, there, "texts", value=which)
    return [text for text in texts if text.kind in wanted]


def heard(spoken: Sequence[SpokenPair], limit: int) -> list[PassagePair]:
    """The pairs that people are asked to hear: `limit` of them, spread over texts and voices."""
    return [each.pair for each in spread(spoken, limit)]


def make_heard(
    reference: Engine, candidate: Engine, voices: Sequence[str], limit: int, texts: Sequence[FixtureText] = ()
) -> list[PassagePair]:
    """Make the same pairs as `heard`, but speak only these and not all texts with all voices."""
    chosen = spread([(text, voice) for voice in voices for text in texts or short_texts()], limit)
    pairs: list[PassagePair] = []
    for text, voice in tqdm(chosen, desc="passages"):
        with quiet():
            first, second = (speak(engine, [text], [voice]) for engine in (reference, candidate))
        pairs += [each.pair for each in pair_up(first, second)]
    return pairs


def shape_of(trials: int) -> tuple[int, int]:
    """The number of pairs (`PAIRS` at most) and of repetitions that make `trials` trials or a few more."""
    repeats = -(-trials // PAIRS)
    return -(-trials // repeats), repeats


def engine_of(variant: str, timing: str = SHARED) -> Engine:
    """An engine of a variant; with shared timing, it speaks with the fp32 model's durations and pitch.

    Raises
    ------
    ParameterError
        `timing` is neither `SHARED` nor `OWN`.
    """
    require_known("timing", timing, (SHARED, OWN), "timing")
    engine = load_engine(variant=variant)
    if timing == OWN or variant == "fp32":
        return engine
    prosody = fp32_prosody(engine.config)
    told: Decoder
    if isinstance(engine.decoder, StagedDecoder):
        told = told_stages(engine.decoder, prosody)
    else:
        told = ToldGraph(model_path(variant, engine.config.home), prosody, engine.config)
    return Engine(replace(engine.parts, decoder=told))


def make_pairs(
    reference: Engine, candidate: Engine, texts: Sequence[FixtureText], voices: Sequence[str]
) -> list[SpokenPair]:
    """Have both engines speak every text with every voice, and pair the results (`speak`, then `pair_up`)."""
    first, second = (speak(engine, texts, voices) for engine in (reference, candidate))
    return pair_up(first, second)


def measure(spoken: Sequence[SpokenPair], parts: Sequence[str] = (QUALITY, DISTANCE)) -> pd.DataFrame:
    """The machine listener's figures of each pair, at equal loudness.

    Returns
    -------
    pandas.DataFrame
        One row for each pair, indexed by its name: text, voice, audio_s, duration_difference_s, residual_lu
        (the difference in loudness that is left). For `QUALITY` also dnsmos_reference and dnsmos_candidate.
        For `DISTANCE` also the log-mel distances in dB of the `candidate` and of both anchors from the
        reference, and `position`, where the candidate's distance lies between those of the anchors. Distances
        are NaN where the timing differs, since they would measure the timing.
    """
    rows = []
    for text, voice, pair, *_ in tqdm(spoken, desc="machine listener"):
        level = match_loudness(pair)
        first, second, rate = level.reference, level.candidate, pair.sample_rate_hz
        row: dict[str, object] = {
            "pair": pair.name,
            "text": text,
            "voice": voice,
            "audio_s": len(first) / rate,
            "duration_difference_s": pair.duration_difference_s,
            "residual_lu": level.residual_lu,
        }
        if QUALITY in parts:
            row |= {"dnsmos_reference": dnsmos(first, rate), "dnsmos_candidate": dnsmos(second, rate)}
        if DISTANCE in parts:
            row |= _distances(first, second, rate)
        rows.append(row)
    return pd.DataFrame(rows).set_index("pair")


def _distances(first: Samples, second: Samples, rate_hz: int) -> dict[str, float]:
    if len(first) != len(second):
        return dict.fromkeys((DITHERED, NOISY, "candidate", "position"), float("nan"))
    near = log_mel_distance_db(first, _dithered(first), rate_hz)
    far = log_mel_distance_db(first, damages.noisy(first), rate_hz)
    distance = log_mel_distance_db(first, second, rate_hz)
    return {
        DITHERED: near,
        NOISY: far,
        "candidate": distance,
        "position": float(np.log(max(distance, near) / near) / np.log(far / near)),
    }


def judge(table: pd.DataFrame, timing: str = SHARED) -> list[Check]:
    """The checks: DNSMOS falls by less than 3 % with 95 % confidence, and distances are well below the
    audible anchor's.

    With shared timing, both clips of a pair must be equally long. If each clip has its own timing, only
    DNSMOS can compare the two. Figures that were not measured are not judged.
    """
    checks = [Check(RESIDUAL_CHECK, table.residual_lu.abs().max(), high=RESIDUAL_LU)]
    if "dnsmos_candidate" in table:
        lower = 100 * _dnsmos_change(table).low
        checks.insert(0, Check(DNSMOS_CHECK, lower, low=DNSMOS_MARGIN_PERCENT))
    if timing == SHARED:
        checks.append(Check(DURATION_CHECK, table.duration_difference_s.abs().max(), high=0.0))
    if timing == SHARED and "position" in table:
        checks.append(Check(POSITION_CHECK, table.position.median(skipna=False), high=POSITION_HIGH))
    return checks


def _dnsmos_change(table: pd.DataFrame) -> Estimate:
    return paired_change(table.dnsmos_reference, table.dnsmos_candidate, list(table.text))


def figures(table: pd.DataFrame) -> dict[str, float]:
    """The machine listener's figures without a limit. Means and medians are over pairs."""
    change = _dnsmos_change(table)
    return {
        "pairs_count": len(table),
        "texts_count": change.units,
        "machine_dnsmos_change_mean_percent": 100 * change.value,
        "machine_dnsmos_reference_mean": table.dnsmos_reference.mean(),
        "machine_dnsmos_candidate_mean": table.dnsmos_candidate.mean(),
        "machine_log_mel_candidate_median_db": table.candidate.median(),
        "machine_log_mel_dithered_median_db": table[DITHERED].median(),
        "machine_log_mel_noisy_median_db": table[NOISY].median(),
        "machine_log_mel_position_highest": table.position.max(),
    }


def human_checks(result: ListeningResult) -> list[Check]:
    """The checks on people's answers: fewer than 70 % right with 95 % confidence, from enough trials, by
    enough listeners, none of whom is far below chance, and who do not differ. A protocol must have asked for
    enough listeners before the first answer, and there must be enough catch trials to leave out those who do
    not listen. If nobody has finished, the first three fail."""
    found = result.figures()
    limit = 100 * found.get("human_proportion_right_upper_95", float("nan"))
    return [
        Check("human_proportion_right_upper_95_percent", limit, high=100 * INAUDIBLE_BELOW),
        Check("human_trials_count", found.get("human_trials_count", 0), low=trials_to_show()[0]),
        Check("human_listeners_count", found.get("human_listeners_count", 0), low=LEAST_LISTENERS),
        Check("human_planned_listeners_count", result.planned, low=LEAST_LISTENERS),
        Check("human_catch_trials_count", result.catches, low=LEAST_CATCHES),
        Check("human_odd_listeners_count", found.get("human_odd_listeners_count", 0), high=0),
        Check("human_listeners_differ_p", found.get("human_listeners_differ_p", 1.0), low=ALPHA),
    ]


def judged_clips(spoken: Sequence[SpokenPair], table: pd.DataFrame, words: pd.DataFrame) -> list[JudgedClip]:
    """Every pair at equal loudness. The worst pair has the largest distance or, if that was not measured, the
    lowest DNSMOS. `words` is the table of `intelligibility.measure`."""
    change = 100 * (table.dnsmos_candidate / table.dnsmos_reference - 1)
    badness = table.position if table.position.notna().all() else -change
    more = words.word_errors_candidate - words.word_errors_reference
    found = []
    for each, name in zip(spoken, table.index, strict=True):
        measured = {
            "log_mel_position": table.position[name],
            "dnsmos_change_percent": change[name],
            "log_mel_distance_db": table.candidate[name],
            "more_word_errors_count": more[name],
        }
        clip = each.judged(name, measured, float(badness[name]), match_loudness)
        found.append(replace(clip, notes=heard_of(words.loc[name])))
    return found


def controls(spoken: Sequence[SpokenPair]) -> list[NegativeControl]:
    """Candidates that are worse on purpose; for each fault, the check that limits it must fail.

    They are made from the beginnings of the shortest pairs. The first control is no fault: the reference as
    its own candidate must pass every check.
    """
    spoken = [begun(each, CONTROL_S) for each in shortest(spoken, CONTROL_PAIRS)]
    noisy = partial(damages.noisy, seed=1)
    faults: dict[str, tuple[damages.Damage, str, tuple[str, ...]]] = {
        "noise at 20 dB SNR lowers DNSMOS": (noisy, DNSMOS_CHECK, (QUALITY,)),
        "noise at 20 dB SNR is far away": (noisy, POSITION_CHECK, (DISTANCE,)),
        "nothing over 3.5 kHz is far away": (_low_passed, POSITION_CHECK, (DISTANCE,)),
        "25 ms too late is far away": (_late, POSITION_CHECK, (DISTANCE,)),
        "25 ms too long is not the same timing": (_long, DURATION_CHECK, ()),
    }
    untouched = measure([each.damaged(np.copy) for each in spoken])
    found = [NegativeControl("the reference itself passes", caught=not failed(judge(untouched)))]
    for name, (damage, check, parts) in faults.items():
        table = measure([each.damaged(damage) for each in spoken], parts)
        found.append(NegativeControl(name, caught=check in failed(judge(table))))
    return found


def _dithered(samples: Samples) -> Samples:
    return Dither(seed=1).run(samples).astype(np.float32) / np.float32(PCM_MAX)


def _low_passed(samples: Samples) -> Samples:
    """The samples without all that is above 3.5 kHz, as the low anchor of the listening test MUSHRA (ITU-R
    BS.1534)."""
    filter_sections = butter(8, 3500, fs=SAMPLE_RATE_HZ, output="sos")
    return np.asarray(sosfilt(filter_sections, samples), np.float32)


def _late(samples: Samples) -> Samples:
    return np.roll(samples, round(0.025 * SAMPLE_RATE_HZ))


def _long(samples: Samples) -> Samples:
    return np.concatenate([samples, samples[-round(0.025 * SAMPLE_RATE_HZ) :]])
