"""How loud each voice is before any gain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kokoro_lab.engine import Engine
from kokoro_lab.fixtures import FixtureText, load_texts
from kokoro_lab.metrics.loudness import integrated_lufs

LONGEST_CHARACTERS = 140
"""Of a sentence that voices are measured with: 5 to 8 s. A paragraph read at once is 0.6 LU quieter."""
PLAIN_KINDS = ("prose", "punctuation")
LEVELS_FILE = Path(__file__).parents[1] / "model" / "voice_levels.json"


def sentences(limit: int = 0) -> list[FixtureText]:
    """The fixtures that voices are measured with: plain sentences; the first `limit` of them, or all."""
    plain = [t for t in load_texts() if t.kind in PLAIN_KINDS and len(t.text) <= LONGEST_CHARACTERS]
    return plain[: limit or None]


def measure_voice_levels(
    engine: Engine, voices: Sequence[str], texts: Sequence[str], *, progress: bool = True
) -> dict[str, float]:
    """Average loudness of each voice as it is streamed, before any gain.

    Every voice reads the same English texts, whatever its language: the level is the voice's. The longer a
    segment, the quieter the model speaks it, by about 0.6 LU for twice the length; so the texts are to be as
    long as what is usually said at once.

    Returns
    -------
    dict
        Voice → LUFS: the mean over texts of the integrated loudness (ITU-R BS.1770) of each stream.
    """
    from tqdm import tqdm

    levels: dict[str, float] = {}
    for voice in tqdm(voices, desc="voices", disable=not progress):
        asked = {"voice": voice, "language": "en-us", "loudness": "none", "cached": False}
        clips = [engine.stream(text, **asked).joined() for text in texts]
        levels[voice] = float(np.mean([integrated_lufs(c.samples, c.sample_rate_hz) for c in clips]))
    return levels


def write_voice_levels(levels: Mapping[str, float], *, model_sha256: str, texts: Sequence[str]) -> Path:
    """Ship `levels` with the package, with what they were measured on."""
    table = {
        "about": "Average loudness of each voice before gain, LUFS; written by notebook 50_voice_levels",
        "model_sha256": model_sha256,
        "texts": list(texts),
        "lufs": {name: round(value, 2) for name, value in sorted(levels.items())},
    }
    LEVELS_FILE.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    return LEVELS_FILE
