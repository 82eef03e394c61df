"""Is every clip at the target loudness and under the peak limit, as written to disk?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from kokoro_lab.audio import read_wav
from kokoro_lab.containers import save
from kokoro_lab.datatypes import Clip, Samples
from kokoro_lab.dsp.limiter import TRUE_PEAK_LIMIT_DBTP
from kokoro_lab.dsp.loudness import TARGET_LUFS
from kokoro_lab.engine import Engine
from kokoro_lab.fixtures import FixtureText
from kokoro_lab.gates import damages
from kokoro_lab.levelling import MEASURABLE_S
from kokoro_lab.metrics import ebu
from kokoro_lab.metrics.loudness import integrated_lufs, sample_peak_dbfs, true_peak_dbtp
from kokoro_lab.results import Check, Control

TOLERANCE_LU = 1.0


def measure(
    engine: Engine,
    texts: Sequence[FixtureText],
    voices: Sequence[str],
    folder: Path,
    *,
    progress: bool = True,
) -> pd.DataFrame:
    """Speak every text with every voice, write the files, and measure what was written.

    Returns
    -------
    pandas.DataFrame
        One row a clip: text, voice, file, audio_s, integrated_lufs, true_peak_dbtp, gain_db, limited_db,
        rtf.
    """
    rows = []
    pairs = [(text, voice) for voice in voices for text in texts]
    for text, voice in tqdm(pairs, desc="clips", disable=not progress):
        clip = engine.synthesize(text.text, voice=voice)
        path = save(clip, folder / f"{text.id}-{voice}.wav")
        rows.append(
            {"text": text.id, "voice": voice, "file": path.name}
            | figures_of_file(path)
            | {
                "gain_db": clip.report.gain_db,
                "limited_db": clip.report.limited_db,
                "rtf": clip.report.rtf,
            }
        )
    return pd.DataFrame(rows)


def figures_of_file(path: Path) -> dict[str, float]:
    """Length, loudness and peak of a WAV file as a listener gets it."""
    samples, rate_hz = read_wav(path)
    return {
        "audio_s": len(samples) / rate_hz,
        "integrated_lufs": integrated_lufs(samples, rate_hz),
        "true_peak_dbtp": true_peak_dbtp(samples, rate_hz),
    }


def judge(table: pd.DataFrame) -> list[Check]:
    """Limits: clips of 3 s or more within −16 ±1 LUFS; every clip, however short, at most −1 dBTP."""
    long = table[table.audio_s >= MEASURABLE_S]
    lowest = long.integrated_lufs.min() if len(long) else float("nan")
    highest = long.integrated_lufs.max() if len(long) else float("nan")
    return [
        Check("quietest_clip_lufs", lowest, low=TARGET_LUFS - TOLERANCE_LU, high=TARGET_LUFS + TOLERANCE_LU),
        Check("loudest_clip_lufs", highest, low=TARGET_LUFS - TOLERANCE_LU, high=TARGET_LUFS + TOLERANCE_LU),
        Check("highest_true_peak_dbtp", table.true_peak_dbtp.max(), high=TRUE_PEAK_LIMIT_DBTP),
    ]


def controls(clip: Clip, folder: Path) -> list[Control]:
    """Damage a good clip in ways that this gate is there for; each must fail the same judge.

    `clip` must be 3 s or longer and pass as it is, or nothing would be shown.
    """
    faults: dict[str, damages.Damage] = {
        "1.5 dB too loud": partial(damages.gained, db=1.5),
        "1.5 dB too quiet": partial(damages.gained, db=-1.5),
        "one sample at full scale": _full_scale_sample,
        "a peak between samples": _peak_between_samples,
        "second half 6 dB down": _half_faded,
    }
    if not _passes(clip, folder / "control-untouched.wav"):
        return [Control("the untouched clip passes", caught=False)]
    found = []
    for name, damage in faults.items():
        damaged = replace(clip, samples=damage(clip.samples))
        path = folder / f"control-{name.replace(' ', '-')}.wav"
        found.append(Control(name, caught=not _passes(damaged, path)))
    return found


def meter_checks() -> tuple[list[Check], list[Control], pd.DataFrame]:
    """The meter against EBU Tech 3341 and 3342, and broken meters against the same signals."""
    cases = ebu.ebu_self_check()
    failed = sum(not case.passed for case in cases)
    broken = {
        "a meter that reads sample peaks": replace(ebu.Meter(), true_peak_dbtp=sample_peak_dbfs),
        "a meter 0.5 LU off": replace(ebu.Meter(), integrated_lufs=_half_a_lu_off),
    }
    found = [
        Control(name, caught=any(not case.passed for case in ebu.ebu_self_check(meter=meter)))
        for name, meter in broken.items()
    ]
    table = pd.DataFrame(
        {
            "case": [c.case for c in cases],
            "quantity": [c.quantity for c in cases],
            "expected": [c.expected for c in cases],
            "measured": [c.measured for c in cases],
            "passed": [c.passed for c in cases],
        }
    )
    checks = [Check("ebu_cases_count", len(cases), low=20), Check("ebu_cases_failed_count", failed, high=0)]
    return checks, found, table


def _half_a_lu_off(samples: np.ndarray, sample_rate_hz: int) -> float:
    return integrated_lufs(samples, sample_rate_hz) + 0.5


def _passes(clip: Clip, path: Path) -> bool:
    save(clip, path)
    return all(check.passed for check in judge(pd.DataFrame([figures_of_file(path)])))


def _full_scale_sample(samples: Samples) -> Samples:
    damaged = samples.copy()
    damaged[len(damaged) // 2] = 1.0
    return damaged


def _peak_between_samples(samples: Samples) -> Samples:
    """A quarter-rate burst at 45°: no sample above −2.9 dBFS, a true peak at about 0 dBTP."""
    damaged = samples.copy()
    start, count = len(damaged) // 2, 400
    phase = np.pi / 2 * np.arange(count) + np.pi / 4
    damaged[start : start + count] = (np.sin(phase) * np.hanning(count)).astype(np.float32)
    return damaged


def _half_faded(samples: Samples) -> Samples:
    """Half at −6 dB takes the whole under the band: loudness is a property of all of a clip."""
    damaged = samples.copy()
    damaged[len(damaged) // 2 :] *= np.float32(10 ** (-6 / 20))
    return damaged
