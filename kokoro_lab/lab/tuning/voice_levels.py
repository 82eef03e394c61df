"""Measures the loudness of each voice before any gain, and how much softer it speaks longer segments.

A *segment* is the part of a text that the model reads at once: one or more sentences.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from kokoro_lab.containers.plain_json import read_object
from kokoro_lab.datatypes import Clip
from kokoro_lab.dsp import Gain, Limiter, voice_gain_db
from kokoro_lab.dsp.loudness import TARGET_LUFS
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.fixtures import FixtureText, load_texts
from kokoro_lab.lab.results import Check
from kokoro_lab.metrics.loudness import integrated_lufs
from kokoro_lab.model.decoder import SegmentRequest
from kokoro_lab.speech.engine import Engine
from kokoro_lab.typed import require_range
from kokoro_lab.weights.voices import ENERGY_SLOPE, MEASURED_TOKENS, REFERENCE_TOKENS

LEVELS_FILE = Path(__file__).parents[2] / "weights" / "voice_levels.json"
PLAIN_KINDS = ("prose", "punctuation")
USUAL_SLOPE_LU = -0.8
"""Change of a voice's loudness when segments get twice as long: the mean over 28 English voices."""
LARGEST_DIFFERENCE_LU = 1.0
FEWEST_TEXTS = 8
"""The fewest texts from which levels are written: all plain fixtures. With fewer, level and slope depend on
the texts."""
LIMITER_ROUNDS = 2
USUAL_WEIGHT = 1.0
"""Weight of the usual slope in squared octaves. Two clips whose lengths are 1.4 octaves apart weigh as
much."""


class VoiceLevel(NamedTuple):
    """A voice's loudness in LUFS for segments of `REFERENCE_TOKENS` ids, the change in LU for segments twice
    as long, and the energy that the model predicts (`DecodedSegment.energy`), if it predicts one."""

    lufs: float
    slope_lu: float
    energy: float | None = None


def plain_texts(limit: int = 0) -> list[FixtureText]:
    """The fixtures with which voices are measured: sentences and paragraphs. With a `limit` above 0, at most
    this number of them, spread over all lengths."""
    plain = sorted((t for t in load_texts() if t.kind in PLAIN_KINDS), key=lambda text: len(text.text))
    if not limit or limit >= len(plain):
        return plain
    return [plain[round(i * (len(plain) - 1) / max(1, limit - 1))] for i in range(limit)]


def measure_voice_levels(
    engine: Engine, voices: Sequence[str], texts: Sequence[str]
) -> dict[str, VoiceLevel]:
    """Average loudness of each voice as it is streamed, before any gain, by the length of segments.

    Every voice reads the same English texts, whatever its language, so that only the voices differ.

    Returns
    -------
    dict
        Voice → level, slope and energy. Level and slope are those of a line through the integrated loudness
        (ITU-R BS.1770) of the streams, over the logarithm of their segments' numbers of token ids. The level
        is corrected for the loudness that the limiter takes away: a third of a decibel on average.

    Raises
    ------
    ParameterError
        There is no text.
    """
    from kokoro_lab.lab.bars import tqdm

    levels: dict[str, VoiceLevel] = {}
    for voice in tqdm(voices, desc="voices"):
        asked = {"voice": voice, "language": "en-us", "loudness": "none", "cached": False}
        clips = [engine.stream(text, **asked).joined() for text in texts]
        lufs = [integrated_lufs(clip.samples, clip.sample_rate_hz) for clip in clips]
        level = behind_the_limiter(level_of([octaves(clip) for clip in clips], lufs), clips)
        levels[voice] = level._replace(energy=usual_energy(engine, voice, clips))
    return levels


def usual_energy(engine: Engine, voice: str, clips: Sequence[Clip]) -> float | None:
    """The average predicted energy in segments of `REFERENCE_TOKENS` ids, from the segments of `clips`. None
    if the model predicts no energy."""
    decode, style = engine.parts.decoder.decode, engine.voice(voice).style
    said = [segment.token_ids for clip in clips for segment in clip.segments]
    found = [decode(SegmentRequest(ids, style(len(ids)), predicted=True)).energy for ids in said]
    if None in found:
        return None
    lengths = np.clip([len(ids) for ids in said], *MEASURED_TOKENS) / REFERENCE_TOKENS
    return float(np.mean(found) - ENERGY_SLOPE * np.log2(lengths).mean())  # type: ignore[arg-type]


def behind_the_limiter(level: VoiceLevel, clips: Sequence[Clip]) -> VoiceLevel:
    """The voice's level, corrected so that its clips meet the target on average after the limiter.

    The limiter takes more of a larger gain, so the level is found in a few rounds; each leaves about a tenth
    of the error.

    Parameters
    ----------
    level : VoiceLevel
        Level before the limiter.
    clips : sequence of Clip
        Clips without any gain.
    """
    for _ in range(LIMITER_ROUNDS):
        heard = []
        for clip in clips:
            gain = Gain(voice_gain_db(level.lufs + level.slope_lu * octaves(clip)))
            limited = Limiter(clip.sample_rate_hz).run(gain.run(clip.samples))
            heard.append(integrated_lufs(limited, clip.sample_rate_hz))
        level = level._replace(lufs=level.lufs + float(np.mean(heard)) - TARGET_LUFS)
    return level


def octaves(clip: Clip) -> float:
    """How long a clip's segments are, in doublings of `REFERENCE_TOKENS` ids: a mean over their ids."""
    counts = np.array([len(segment.token_ids) for segment in clip.segments])
    measured = np.clip(counts, *MEASURED_TOKENS)
    return float(np.average(np.log2(measured / REFERENCE_TOKENS), weights=counts))


def level_of(lengths_octaves: Sequence[float], lufs: Sequence[float]) -> VoiceLevel:
    """The line through the loudness of clips over their lengths, drawn towards the usual slope if the lengths
    differ little.

    Raises
    ------
    ParameterError
        There is no clip.

    Notes
    -----
    Ridge regression towards a given slope (Hoerl & Kennard, Technometrics 12(1), 1970). With a dozen clips,
    an unconstrained slope would depend on the texts. The loudness of a sentence was predicted from the other
    sentences of its voice: for 99.3 % of 279 sentences it was right within 1 LU, and for 98.2 % without the
    usual slope.
    """
    if not lengths_octaves:
        raise ParameterError("A level needs a clip.", field="texts", value=0, allowed="one or more")
    lengths, levels = np.asarray(lengths_octaves, np.float64), np.asarray(lufs, np.float64)
    aside = lengths - lengths.mean()
    known = float(aside @ aside)
    slope = (float(aside @ levels) + USUAL_WEIGHT * USUAL_SLOPE_LU) / (known + USUAL_WEIGHT)
    return VoiceLevel(float(levels.mean() - slope * lengths.mean()), slope)


def beside_shipped(levels: Mapping[str, VoiceLevel]) -> pd.DataFrame:
    """A row for each voice: its level, slope and energy, and beside them shipped_lufs, shipped_slope_lu and
    difference_lu, NaN if no level of the voice ships."""
    table, shipped = pd.DataFrame.from_dict(levels, orient="index"), read_object(LEVELS_FILE)
    for name in ("lufs", "slope_lu"):
        table[f"shipped_{name}"] = pd.Series(shipped[name], dtype=float).reindex(table.index)
    return table.assign(difference_lu=table.lufs - table.shipped_lufs)


def judge(table: pd.DataFrame) -> list[Check]:
    """The check of the table of `beside_shipped`: every voice has a shipped level, and none is further from
    it than 1 LU. A run that writes new levels is judged by the old ones, too."""
    worst = table.difference_lu.abs().max(skipna=False)
    return [Check("largest_difference_lu", worst, high=LARGEST_DIFFERENCE_LU)]


def write_voice_levels(levels: Mapping[str, VoiceLevel], *, model_sha256: str, texts: Sequence[str]) -> Path:
    """Write `levels` into the package, with the facts of the measurement. The levels of other voices stay.

    Raises
    ------
    ParameterError
        There are too few texts, a level is not finite, or other voices would stay that were measured with
        another model or other texts.
    """
    require_range("texts", len(texts), FEWEST_TEXTS, message="A level from few texts depends on the texts.")
    shipped = read_object(LEVELS_FILE)
    for name, level in levels.items():
        if not np.isfinite((level.lufs, level.slope_lu)).all():
            raise ParameterError("This voice has no level.", field="voices", value=name)
    measured_with = {"model_sha256": model_sha256, "texts": list(texts)}
    kept = sorted(set(shipped["lufs"]) - set(levels))
    if kept and any(shipped[fact] != value for fact, value in measured_with.items()):
        raise ParameterError(
            "The levels of the other voices were measured with another model or other texts.",
            field="voices",
            value=f"without {kept[0]}" + f" and {len(kept) - 1} more" * (len(kept) > 1),
            allowed="all",
        )
    old = {name: VoiceLevel(*(shipped[key][name] for key in VoiceLevel._fields)) for name in kept}
    by_name = sorted({**old, **levels}.items())
    table = {
        "about": f"Average loudness of each voice before gain in segments of {REFERENCE_TOKENS} token ids, "
        "LUFS, how much louder it is in segments twice as long, LU, and the energy that the model predicts; "
        "written by notebook 50_voice_levels",
        **measured_with,
        "lufs": {name: round(level.lufs, 2) for name, level in by_name},
        "slope_lu": {name: round(level.slope_lu, 2) for name, level in by_name},
        "energy": {name: round(level.energy or 0.0, 2) for name, level in by_name},
    }
    LEVELS_FILE.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    return LEVELS_FILE
