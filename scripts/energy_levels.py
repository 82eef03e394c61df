"""Fit how loudness depends on the energy that the model predicts: `ENERGY_LU` of `weights/voices.py`.

    python scripts/energy_levels.py [sentences voices]

Some voices speak sentences of `fixtures/texts/calibration.jsonl` at speeds that the model speaks itself.
Every other sentence is fitted, and the rest judge. `ENERGY_SLOPE` is measured on all of them at speed 1. The
notebook `50_voice_levels` measures the usual energy of each voice.
"""

from __future__ import annotations

import sys

import numpy as np

import kokoro_lab as kl
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.fixtures import load_texts, spread
from kokoro_lab.metrics.loudness import integrated_lufs
from kokoro_lab.model.decoder import SegmentRequest
from kokoro_lab.weights.store import voice_names
from kokoro_lab.weights.voices import ENERGY_LU, ENERGY_SLOPE, MEASURED_TOKENS, REFERENCE_TOKENS

SPEEDS = (0.7, 1.0, 1.5)


def main() -> None:
    sentences, voices = (int(each) for each in sys.argv[1:] or (8, 12))
    engine = kl.load_engine()
    texts = spread([text for text in load_texts("calibration") if len(text.text) > 60], sentences)
    said = [engine.stream(text.text, voice="af_heart").joined().segments[-1].token_ids for text in texts]
    rows = []
    for name in tqdm(spread(list(voice_names()), voices), desc="voices"):
        voice = engine.voice(name)
        for number, ids in enumerate(said):
            for speed in SPEEDS:
                asked = SegmentRequest(ids, voice.style(len(ids)), speed, predicted=True)
                decoded = engine.parts.decoder.decode(asked)
                lufs = integrated_lufs(np.concatenate(list(decoded.blocks)), 24_000)
                octaves = np.log2(np.clip(len(ids), *MEASURED_TOKENS) / REFERENCE_TOKENS)
                above = decoded.energy - voice.usual_energy
                rows.append((number, speed, octaves, above, lufs - voice.level_at(len(ids))))
    number, speed, octaves, above, off_lu = np.array(rows).T
    fitted = number % 2 == 0
    plain = speed == 1
    slope = np.polyfit(octaves[plain], above[plain], 1)[0]
    unusual = above - ENERGY_SLOPE * octaves
    by_energy = np.polyfit(unusual[fitted], off_lu[fitted], 1)[0]
    left = off_lu[~fitted] - ENERGY_LU * unusual[~fitted]
    sys.stdout.write(
        f"ENERGY_SLOPE {slope:.2f} (shipped {ENERGY_SLOPE})\n"
        f"ENERGY_LU {by_energy:.2f} (shipped {ENERGY_LU})\n"
        f"of {len(left)} held out: {left.std():.2f} LU of {off_lu[~fitted].std():.2f}\n"
    )


if __name__ == "__main__":
    main()
