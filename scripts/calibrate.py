"""Calibrate the int8 variant again: writes `kokoro_lab/graphs/ranges.npz` (about 20 minutes on 2 cores)."""

from __future__ import annotations

import sys
from pathlib import Path

from kokoro_lab.graphs import quantise
from kokoro_lab.lab.fixtures import load_texts
from kokoro_lab.lab.tuning.reporter import calibrate
from kokoro_lab.weights.store import voice_names

TIMES = 2
"""How often each text is spoken, each time by another voice."""

if __name__ == "__main__":
    texts = [text.text for text in load_texts("calibration")] * TIMES
    target = Path(quantise.__file__).with_name("ranges.npz")
    calibrate(texts, voice_names()).save(target)
    sys.stdout.write(f"{target}: {target.stat().st_size // 1000} kB\n")
