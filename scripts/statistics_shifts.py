"""Measure again how far the statistics of integer variants are from fp32's (about 6 minutes)."""

from __future__ import annotations

import sys

import numpy as np

from kokoro_lab.graphs.recipes import exclusions
from kokoro_lab.lab.fixtures import load_texts
from kokoro_lab.lab.tuning.statistics import shift_of
from kokoro_lab.model.predictor import SHIFTS_FILE
from kokoro_lab.weights.store import voice_names

if __name__ == "__main__":
    texts = [text.text for text in load_texts("calibration")]
    shifts = {variant: shift_of(variant, texts, voice_names()) for variant in exclusions()}
    np.savez_compressed(SHIFTS_FILE, **shifts)
    sys.stdout.write(f"{SHIFTS_FILE.name}: {SHIFTS_FILE.stat().st_size // 1000} kB\n")
