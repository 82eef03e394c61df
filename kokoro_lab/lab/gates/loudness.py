"""Is every clip at the target loudness and under the peak limit, as written to disk?

A file is measured as a whole before its gain is set, so each file must meet the target. A stream cannot be
measured first: it has predicted gains and a limiter, and 99 % of the streams must meet the target, also with
blends and at speeds other than 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from kokoro_lab.containers import save
from kokoro_lab.containers.pcm import read_wav
from kokoro_lab.datatypes import Clip, Samples, WordTiming
from kokoro_lab.dsp import Gain, Limiter, voice_gain_db
from kokoro_lab.dsp.limiter import TRUE_PEAK_LIMIT_DBTP
from kokoro_lab.dsp.loudness import TARGET_LUFS
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.clips import JudgedClip, Limits, Sound
from kokoro_lab.lab.fixtures import FixtureText, read_by, read_in, require_known, spread
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.metrics import ebu
from kokoro_lab.metrics.intervals import share_of
from kokoro_lab.metrics.loudness import MOMENTARY_S, integrated_lufs, sample_peak_dbfs, true_peak_dbtp
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.levelling import MEASURABLE_S
from kokoro_lab.weights.store import voice_names

TOLERANCE_LU = 1.0
LOWEST_LUFS, HIGHEST_LUFS = TARGET_LUFS - TOLERANCE_LU, TARGET_LUFS + TOLERANCE_LU
STREAMS_WITHIN_PERCENT = 99.0
FILE, STREAM = "file", "stream"
"""How a clip was requested: as a file, or as a stream."""
ALL, ENGLISH = "all", "english"
BLENDS = (
    *("af_nicole+am_onyx", "if_sara+am_onyx", "af_bella(2)+af_sky(1)", "af_nova+am_puck"),
    *("af_nicole+bm_lewis", "af_heart+am_michael", "af_nicole+am_santa", "hf_alpha+bm_lewis"),
    *("af_nicole+zm_yunyang", "zf_xiaoxiao+am_adam", "af_nicole+af_heart", "bf_emma+bm_george"),
    *("am_onyx+af_jessica", "jf_alpha+af_bella", "am_adam+am_santa", "ff_siwis+bf_lily"),
    *("am_puck+af_bella", "bm_lewis+af_kore", "af_river+am_onyx", "af_heart+af_bella+am_echo+bm_fable"),
)
"""Blends of similar voices and of opposite ones: a whisper with deep voices, loud ones with soft ones, a
creaking one, four at once."""
FEW_TEXTS = 4
"""The most texts, of all lengths, for each blend, and for each voice and speed."""
CLIP_LIMITS: Limits = {
    "integrated_loudness_lufs": (LOWEST_LUFS, HIGHEST_LUFS),
    "true_peak_dbtp": (None, TRUE_PEAK_LIMIT_DBTP),
}
"""Limits of each clip. The loudness of a clip under 3 s is not judged."""


def voices_of(spec: str) -> list[str]:
    """The voices that a gate is asked to judge: names separated by commas, `english` or `all`.

    Raises
    ------
    ParameterError
        There is no voice of one of these names, or no voice is named.
    """
    there = list(voice_names())
    if spec == ALL:
        return there
    if spec == ENGLISH:
        return [name for name in there if name[0] in "ab"]
    names = [name.strip() for name in spec.split(",")]
    for name in names:
        allowed = f"{ALL}, {ENGLISH}, or names with commas such as {there[0]}"
        require_known("voice", name, there, "voices", allowed=allowed)
    return names


def measure(
    engine: Engine,
    texts: Sequence[FixtureText],
    voices: Sequence[str],
    folder: Path,
    heard: dict[str, Sequence[WordTiming]] | None = None,
    *,
    ways: Sequence[str] = (FILE, STREAM),
    speeds: Sequence[float] = (1.0,),
) -> pd.DataFrame:
    """Speak every text with every voice, in the language that `read_in` gives, write the clips, and measure
    the files.

    A stream is spoken without any cache, and its chunks are joined. The times of its words are put into
    `heard`, by the name of its file.

    Returns
    -------
    pandas.DataFrame
        One row for each clip: text, voice, speed, way (`file` or `stream`), file, audio_s, integrated_lufs,
        true_peak_dbtp, gain_db, limited_db, rtf.
    """
    rows = []
    jobs = list(product(read_by(texts, voices), speeds, ways))
    for (text, voice), speed, way in tqdm(jobs, desc="clips"):
        asked = {"voice": voice, "speed": speed, "language": read_in(text.text, voice)}
        clip = engine.stream(text.text, **asked, streamed=way == STREAM, cached=False).joined()
        spoken_by = voice if speed == 1 else f"{voice}-{speed:g}"
        path = save(clip, folder / f"{text.id.replace(' ', '-')}-{spoken_by}-{way}.wav")
        if heard is not None:
            heard[path.name] = clip.timings
        rows.append(
            {"text": text.id, "voice": voice, "speed": speed, "way": way, "file": path.name}
            | figures_of_file(path)
            | {name: getattr(clip.report, name) for name in ("gain_db", "limited_db", "rtf")}
        )
    return pd.DataFrame(rows)


def measure_others(
    engine: Engine,
    texts: Sequence[FixtureText],
    folder: Path,
    heard: dict[str, Sequence[WordTiming]] | None = None,
    *,
    blends: int = len(BLENDS),
    speeds: str = "",
    voices: str = "",
) -> pd.DataFrame:
    """Measure streams whose loudness does not follow from the measured loudness of one voice: those of
    `BLENDS`, and those of `voices` at `speeds` (names and numbers separated by commas), each with at most
    `FEW_TEXTS` of `texts`. Returns the table of `measure`."""
    few = spread([text for text in texts if not text.reader], FEW_TEXTS)
    at_speeds = [float(speed) for speed in speeds.split(",") if speed]
    asked = [(BLENDS[:blends], [1.0]), (voices_of(voices) if at_speeds else [], at_speeds)]
    parts = [measure(engine, few, by, folder, heard, ways=(STREAM,), speeds=at) for by, at in asked]
    return pd.concat(parts, ignore_index=True)


def figures_of_file(path: Path) -> dict[str, float]:
    """Length, loudness and peak of a WAV file as a listener gets it. The loudness of less than 0.4 s is
    NaN."""
    samples, rate_hz = read_wav(path)
    measurable = len(samples) >= MOMENTARY_S * rate_hz
    return {
        "audio_s": len(samples) / rate_hz,
        "integrated_lufs": integrated_lufs(samples, rate_hz) if measurable else float("nan"),
        "true_peak_dbtp": true_peak_dbtp(samples, rate_hz),
    }


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """The clips that are long enough for their loudness to be judged: 3 s or more."""
    return table[table.audio_s >= MEASURABLE_S]


def within(table: pd.DataFrame) -> pd.Series:
    """Which clips lie within −16 ±1 LUFS."""
    return table.integrated_lufs.between(LOWEST_LUFS, HIGHEST_LUFS)


def judge(table: pd.DataFrame) -> list[Check]:
    """The checks of files and of streams. Those of files fail if there is no file, those of streams if there
    is no stream."""
    return judge_files(table[table.way == FILE]) + judge_streams(table[table.way == STREAM])


def judge_files(table: pd.DataFrame) -> list[Check]:
    """The checks of files: every clip of 3 s or more is within −16 ±1 LUFS, and every clip, however short,
    has at most −1 dBTP."""
    lufs = judged(table).integrated_lufs
    return [
        Check("quietest_file_lufs", lufs.min(), low=LOWEST_LUFS, high=HIGHEST_LUFS),
        Check("loudest_file_lufs", lufs.max(), low=LOWEST_LUFS, high=HIGHEST_LUFS),
        Check("file_true_peak_most_dbtp", table.true_peak_dbtp.max(), high=TRUE_PEAK_LIMIT_DBTP),
    ]


def judge_streams(table: pd.DataFrame) -> list[Check]:
    """The checks of streams: 99 % of the clips of 3 s or more are within −16 ±1 LUFS, and every clip, however
    short, has at most −1 dBTP."""
    long = judged(table)
    return [
        Check("streams_judged_count", len(long), low=1),
        Check("streams_within_band_percent", 100 * within(long).mean(), low=STREAMS_WITHIN_PERCENT),
        Check("stream_true_peak_most_dbtp", table.true_peak_dbtp.max(), high=TRUE_PEAK_LIMIT_DBTP),
    ]


def figures(table: pd.DataFrame) -> dict[str, float]:
    """Figures without a limit, among them the 95 % interval (`share_of` voices and texts) of the share of
    streams that are within −16 ±1 LUFS. That share itself is a check."""
    streams = judged(table[table.way == STREAM])
    inside, low, high = int(within(streams).sum()), float("nan"), float("nan")
    if len(streams):
        share = share_of(within(streams), list(streams.voice), list(streams.text))
        low, high = share.low, share.high
    blends = streams[streams.voice.str.contains("+", regex=False)]
    return {
        "blends_within_band_percent": 100 * within(blends).mean(),
        "other_speeds_within_band_percent": 100 * within(streams[streams.speed != 1]).mean(),
        "clips_count": len(table),
        "streams_outside_band_count": len(streams) - inside,
        "streams_within_band_low_95_percent": 100 * low,
        "streams_within_band_high_95_percent": 100 * high,
        "stream_lufs_mean": streams.integrated_lufs.mean(),
        "stream_lufs_deviation_lu": streams.integrated_lufs.std(),
        "median_rtf": table.rtf.median(),
        "deepest_limiting_db": table.limited_db.max(),
    }


def judged_clips(
    table: pd.DataFrame, texts: Sequence[FixtureText], folder: Path, heard: Mapping[str, Sequence[WordTiming]]
) -> list[JudgedClip]:
    """Every clip as a judged clip. The worst is furthest outside the limits that apply to it, in dB. The
    reference of a stream is the file of the same text and voice, if there is one.

    Parameters
    ----------
    table, folder, heard
        The table, the folder and the words of `measure`.
    """
    said = {text.id: text.text for text in texts}
    files = {(row.text, row.voice, row.speed): row.file for row in table[table.way == FILE].itertuples()}

    def sound(file: str) -> Sound:
        return Sound(read_wav(folder / file)[0], heard.get(file, ()), folder / file)

    found = []
    for row in table.itertuples():
        lufs = row.integrated_lufs if row.audio_s >= MEASURABLE_S else float("nan")
        off_db = [abs(lufs - TARGET_LUFS) - TOLERANCE_LU, row.true_peak_dbtp - TRUE_PEAK_LIMIT_DBTP]
        file = files.get((row.text, row.voice, row.speed)) if row.way == STREAM else None
        reference = partial(sound, file) if file else None
        measured = {
            "integrated_loudness_lufs": lufs,
            "true_peak_dbtp": row.true_peak_dbtp,
            "gain_db": row.gain_db,
            "limited_db": row.limited_db,
        }
        spoken_by = row.voice if row.speed == 1 else f"{row.voice} at {row.speed:g}"
        text = said[row.text]
        about = (f"{row.text}, {spoken_by}, {row.way}", text, row.voice, read_in(text, row.voice))
        found.append(
            JudgedClip(*about, measured, float(np.nanmax(off_db)), partial(sound, row.file), reference)
        )
    return found


def worst(table: pd.DataFrame, count: int = 5) -> pd.DataFrame:
    """The clips that are furthest from the target, among those of 3 s or more, or among all if no clip is so
    long."""
    long = judged(table) if len(judged(table)) else table
    distance = (long.integrated_lufs - TARGET_LUFS).abs()
    return long.loc[distance.sort_values(ascending=False).index[:count]]


def controls(clip: Clip, folder: Path) -> list[NegativeControl]:
    """A good clip, damaged in ways that this gate must catch, as a file and as a stream.

    `clip` must be 3 s or longer and pass undamaged, or the controls would show nothing.
    """
    faults: dict[str, damages.Damage] = {
        **{name: damages.DAMAGES[name] for name in CAUGHT},
        "1.5 dB too loud": partial(damages.gained, db=1.5),
        "1.5 dB too quiet": partial(damages.gained, db=-1.5),
        "one sample at full scale": _full_scale_sample,
        "a peak between samples": _peak_between_samples,
        "second half 6 dB down": _half_faded,
    }
    if not all(_verdicts(clip, folder / "control-untouched.wav")):
        return [NegativeControl("the untouched clip passes", caught=False)]
    found = []
    for name, damage in faults.items():
        damaged = replace(clip, samples=damage(clip.samples))
        path = folder / f"control-{name.replace(' ', '-')}.wav"
        found.append(NegativeControl(name, caught=not any(_verdicts(damaged, path))))
    return found


def mean_of_levels(
    engine: Engine, text: FixtureText, folder: Path, blend: str = BLENDS[0]
) -> NegativeControl:
    """A control: a blend that is brought to the target as if it were as loud as its voices on average. If the
    clip is judged as a stream, it must fail."""
    clip = engine.stream(text.text, voice=blend, loudness="none", cached=False).joined()
    level_at = engine.voice(blend).level_at
    lufs = np.mean([level_at(len(segment.token_ids)) for segment in clip.segments])
    levelled = Limiter(clip.sample_rate_hz).run(Gain(voice_gain_db(float(lufs))).run(clip.samples))
    _, passes = _verdicts(replace(clip, samples=levelled), folder / "control-mean-of-levels.wav")
    return NegativeControl(f"{blend} at the mean of its voices' levels", caught=not passes)


CAUGHT = ("3 dB louder", "3 dB quieter")
"""Those of `damages.DAMAGES` that this gate must catch."""


def meter_checks() -> tuple[list[Check], list[NegativeControl], pd.DataFrame]:
    """Controls of the meter: it must pass the signals of EBU Tech 3341 and 3342, and broken meters must fail
    them."""
    cases = list(ebu.ebu_self_check())
    broken = {
        "a meter that reads sample peaks": replace(ebu.Meter(), true_peak_dbtp=sample_peak_dbfs),
        "a meter 0.5 LU off": replace(ebu.Meter(), integrated_lufs=_half_a_lu_off),
    }
    found = [
        NegativeControl(name, caught=any(not case.passed for case in ebu.ebu_self_check(meter=meter)))
        for name, meter in broken.items()
    ]
    columns = ("case", "quantity", "expected", "measured", "passed")
    table = pd.DataFrame({name: [getattr(case, name) for case in cases] for name in columns})
    wrong = sum(not case.passed for case in cases)
    checks = [Check("ebu_cases_count", len(cases), low=20), Check("ebu_cases_failed_count", wrong, high=0)]
    return checks, found, table


def _half_a_lu_off(samples: np.ndarray, sample_rate_hz: int) -> float:
    return integrated_lufs(samples, sample_rate_hz) + 0.5


def _verdicts(clip: Clip, path: Path) -> tuple[bool, bool]:
    """Whether a clip passes as a file, and as a stream."""
    save(clip, path)
    table = pd.DataFrame([figures_of_file(path)])
    return not failed(judge_files(table)), not failed(judge_streams(table))


def _full_scale_sample(samples: Samples) -> Samples:
    damaged = samples.copy()
    damaged[len(damaged) // 2] = 1.0
    return damaged


def _peak_between_samples(samples: Samples) -> Samples:
    """A burst at a quarter of the sample rate with a phase of 45°: no sample is above −2.9 dBFS, but the true
    peak is about 0 dBTP."""
    damaged = samples.copy()
    start, count = len(damaged) // 2, 400
    phase = np.pi / 2 * np.arange(count) + np.pi / 4
    damaged[start : start + count] = (np.sin(phase) * np.hanning(count)).astype(np.float32)
    return damaged


def _half_faded(samples: Samples) -> Samples:
    """A clip whose second half is 6 dB softer, so that the whole clip lies below the band."""
    damaged = samples.copy()
    damaged[len(damaged) // 2 :] *= np.float32(10 ** (-6 / 20))
    return damaged
