"""How often does a gate object to clean speech, and how often to each damage? Clip by clip.

A gate that never alarms is as useless as one that always does, and each passes one half of a test. So every
gate that judges single clips gets the same clips clean and with each damage of `damages.DAMAGES`. Gates that
judge many clips at once (DNSMOS, word errors) have no verdict on one clip; their false alarms follow from
their statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples
from kokoro_lab.dsp.limiter import TRUE_PEAK_LIMIT_DBTP
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bars import quiet, tqdm
from kokoro_lab.lab.clips import JudgedClip, Limits, Sound
from kokoro_lab.lab.fixtures import FixtureText, read_by, read_in
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.gates.loudness import CAUGHT, HIGHEST_LUFS, LOWEST_LUFS
from kokoro_lab.lab.gates.seams import SEEN_ALONE, judge_clip
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.metrics.intervals import share_of
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.levelling import MEASURABLE_S

CLEAN = "clean"
ANY_GATE = "any gate"
FALSE_ALARMS_PERCENT = 1.0
CLIP_LIMITS: Limits = {"gates_objecting_count": (None, 0.0)}
DETECTED_PERCENT = 95.0
"""The share of clips with each of its own damages for which a gate must alarm."""


@dataclass(frozen=True, slots=True, eq=False)
class StreamPair:
    """One request as it was streamed, twice.

    Parameters
    ----------
    text, voice : str
        The id of the text, and the name of the voice.
    clip : Clip
        The clip that is judged.
    again : numpy.ndarray
        float32 (n,): the samples of the same request, spoken once more.
    said : str
        The text itself.
    """

    text: str
    voice: str
    clip: Clip
    again: Samples
    said: str = ""

    @property
    def name(self) -> str:
        return f"{self.text}-{self.voice}".replace(" ", "-")


Objection = Callable[[Samples, StreamPair], bool]
"""A gate as a function: whether it objects to the samples of a clip, damaged or not."""


def off_level(samples: Samples, spoken: StreamPair) -> bool:
    """The loudness gate: it objects to a clip of 3 s or more outside of −16 ±1 LUFS, and to any true peak
    over −1 dBTP."""
    if not true_peak_dbtp(samples, SAMPLE_RATE_HZ) <= TRUE_PEAK_LIMIT_DBTP:
        return True
    if len(samples) < MEASURABLE_S * SAMPLE_RATE_HZ:
        return False
    return not LOWEST_LUFS <= integrated_lufs(samples, SAMPLE_RATE_HZ) <= HIGHEST_LUFS


def not_repeated(samples: Samples, spoken: StreamPair) -> bool:
    """The golden gate in its narrowest form: it objects if samples differ from those of the request's
    repetition.

    On one build synthesis is deterministic, so any difference is a fault.
    """
    return not np.array_equal(samples, spoken.again)


def defective(samples: Samples, spoken: StreamPair) -> bool:
    """The gate of seams and clicks, as it judges a clip by itself, without a reference and without known
    seams."""
    return bool(failed(judge_clip(samples)))


GATES: dict[str, Objection] = {
    "loudness": off_level,
    "golden on one build": not_repeated,
    "seams and clicks": defective,
}
"""The gates that have a verdict on a single clip, by the subject of their notebook."""
OWN_DAMAGES: dict[str, Sequence[str]] = {
    "loudness": CAUGHT,
    "seams and clicks": [name for name in SEEN_ALONE if name in damages.DAMAGES],
}
"""The damages that each gate is there for; a gate without an entry is there for all of them."""
SHORTEST_S = {"loudness": MEASURABLE_S}
"""The shortest clips, in seconds, whose damages each gate is there for; a gate without an entry is there for
all."""


def speak(engine: Engine, texts: Sequence[FixtureText], voices: Sequence[str]) -> list[StreamPair]:
    """Stream each text (in the language that `read_in` gives) with each voice, twice, without any cache."""
    spoken = []
    for text, voice in tqdm(read_by(texts, voices), desc="streams"):
        first, second = (
            engine.stream(text.text, voice=voice, language=read_in(text.text, voice), cached=False).joined()
            for _ in range(2)
        )
        spoken.append(StreamPair(text.id, voice, first, second.samples, text.text))
    return spoken


def measure(spoken: Sequence[StreamPair], gates: Mapping[str, Objection] = GATES) -> pd.DataFrame:
    """Ask every gate about every clip, clean and with each damage.

    Returns
    -------
    pandas.DataFrame
        One row for each gate, clip and damage: name (of the clip), text, voice, audio_s (of the clean clip),
        damage (`clean` or one of `damages.DAMAGES`), gate, alarm.

    Raises
    ------
    ParameterError
        There is no clip, or no gate.
    """
    for field, given in (("spoken", spoken), ("gates", gates)):
        if not given:
            raise ParameterError("Nothing can be asked.", field=field, value=0, allowed="one or more")
    changes: dict[str, damages.Damage] = {CLEAN: np.copy, **damages.DAMAGES}
    rows = []
    for each in tqdm(spoken, desc="gates"):
        about = {"name": each.name, "text": each.text, "voice": each.voice, "audio_s": _audio_s(each)}
        for damage, change in changes.items():
            samples = change(each.clip.samples)
            for name, objects in gates.items():
                rows.append({**about, "damage": damage, "gate": name, "alarm": objects(samples, each)})
    return pd.DataFrame(rows)


def false_alarms(table: pd.DataFrame) -> pd.DataFrame:
    """How often each gate alarms for clean clips, and how often at least one gate does.

    Returns
    -------
    pandas.DataFrame
        A row for each gate: clips, alarms, percent, its 95 % interval (low_95, high_95) and its one-sided
        upper limit (upper_95), both by `share_of` voices and texts.
    """
    clean = table[table.damage == CLEAN]
    rows = {}
    clips = clean.drop_duplicates("name").set_index("name")
    for gate, alarms in _by_gate(clean).items():
        groupings = [list(clips[column].loc[alarms.index]) for column in ("voice", "text")]
        both = share_of(alarms, *groupings)
        upper = share_of(alarms, *groupings, confidence=0.9).high  # 5 % of the time, the rate is above it
        shares = {"percent": both.value, "low_95": both.low, "high_95": both.high, "upper_95": upper}
        rows[gate] = {"clips": len(alarms), "alarms": int(alarms.sum())} | {
            name: 100 * share for name, share in shares.items()
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def detected(table: pd.DataFrame) -> pd.DataFrame:
    """Percent of the clips for which each gate alarms: a row for each damage, a column for each gate, and a
    last column for any gate."""
    rows = {
        damage: {gate: 100 * alarms.mean() for gate, alarms in _by_gate(clips).items()}
        for damage, clips in table.groupby("damage", sort=False)
        if damage != CLEAN
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def judge(table: pd.DataFrame) -> list[Check]:
    """The checks: each gate, and all gates together, alarm for at most 1 % of the clean clips; and each gate
    alarms for 95 % or more of the clips with each of its own damages.

    What another gate finds says nothing for a gate: the golden gate alarms for every change of a sample, so
    it would stand in for gates that find nothing.
    """
    checks = [
        Check(f"{str(gate).replace(' ', '_')}_false_alarms_percent", percent, high=FALSE_ALARMS_PERCENT)
        for gate, percent in false_alarms(table).percent.items()
    ]
    return checks + [
        Check(f"{gate.replace(' ', '_')}_least_detected_damage_percent", percent, low=DETECTED_PERCENT)
        for gate, percent in least_detected(table).items()
    ]


def least_detected(table: pd.DataFrame) -> dict[str, float]:
    """For each gate, the percent of the clips with one of its own damages for which it alarms: the least over
    these damages. NaN if no clip is long enough for the gate."""
    found = {}
    for gate, rows in table.groupby("gate", sort=False):
        own = rows.damage.isin(OWN_DAMAGES.get(str(gate), list(damages.DAMAGES)))
        long = rows.audio_s >= SHORTEST_S.get(str(gate), 0.0)
        found[str(gate)] = 100 * float(rows[own & long].groupby("damage").alarm.mean().min())
    return found


def figures(table: pd.DataFrame) -> dict[str, float]:
    """Counts, upper limits, and how often each gate finds each damage."""
    found: dict[str, float] = {"clips_count": table.name.nunique()}
    for gate, row in false_alarms(table).iterrows():
        name = str(gate).replace(" ", "_")
        found[f"{name}_false_alarms_count"] = row.alarms
        found[f"{name}_false_alarms_upper_95_percent"] = row.upper_95
    for damage, row in detected(table).iterrows():
        for gate, percent in row.items():
            found[f"{gate}_finds_{damage}_percent".replace(" ", "_")] = percent
    return found


def judged_clips(spoken: Sequence[StreamPair], table: pd.DataFrame) -> list[JudgedClip]:
    """Every clean clip beside its repetition. The worst has the most alarms, then the most damages that a
    gate missed in it."""
    found = []
    for each in spoken:
        rows = table[table.name == each.name]
        clean = rows.damage == CLEAN
        gates = list(rows.gate[clean & rows.alarm])
        missed = int((~clean & ~rows.alarm).sum())
        found.append(
            JudgedClip(
                each.name,
                each.said,
                each.voice,
                read_in(each.said, each.voice),
                {"gates_objecting_count": len(gates), "damages_missed_by_gates_count": missed},
                len(gates) * len(rows) + missed,
                partial(Sound.of, each.clip),
                partial(Sound, each.again, each.clip.timings),
                {"gates that object": ", ".join(gates) or "none"},
            )
        )
    return found


def controls(spoken: Sequence[StreamPair]) -> list[NegativeControl]:
    """Gates that are wrong on purpose: `judge` must refuse their tables, and pass that of a perfect gate."""
    few = sorted(spoken, key=lambda each: _audio_s(each) < max(SHORTEST_S.values()))[:CONTROL_CLIPS]
    perfect: Objection = not_repeated
    wrong: dict[str, Objection] = {
        "a gate that objects to everything": lambda samples, each: True,
        "a gate that objects to nothing": lambda samples, each: False,
        "a gate that objects to one clean clip": lambda samples, each: (
            each is few[0] or perfect(samples, each)
        ),
        "a gate that misses clicks": lambda samples, each: (
            len(samples) != len(each.again) or int(np.count_nonzero(samples != each.again)) > 1
        ),
    }

    @quiet()
    def passes(gates: Mapping[str, Objection]) -> bool:
        return not failed(judge(measure(few, gates)))

    right = dict.fromkeys(GATES, perfect)
    found = [NegativeControl("a gate that knows the clean clips passes", caught=passes(right))]
    found += [NegativeControl(name, caught=not passes({"it": gate})) for name, gate in wrong.items()]
    for name in OWN_DAMAGES:
        dead = right | {name: wrong["a gate that objects to nothing"]}
        found.append(NegativeControl(f"a gate of {name} that objects to nothing", caught=not passes(dead)))
    return found


CONTROL_CLIPS = 2


def _audio_s(spoken: StreamPair) -> float:
    return len(spoken.clip.samples) / SAMPLE_RATE_HZ


def _by_gate(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Alarms by gate, clip by clip, and whether any gate alarmed."""
    wide = table.pivot(index="name", columns="gate", values="alarm")[list(dict.fromkeys(table.gate))]
    return {str(gate): wide[gate] for gate in wide} | {ANY_GATE: wide.any(axis=1)}
