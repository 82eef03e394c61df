"""Measure whether Mandarin streams are understood as well as the published graph with misaki's own phonemes.

Both speak the held-out sentences, and Whisper writes down what it hears. Each clip is kept in a file of JSON
lines, so that a run that was interrupted goes on: `python scripts/mandarin_errors.py <file> [rounds]`; a
round is every sentence by one of the voices, about 15 minutes on two cores.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from misaki.zh import ZHG2P

import kokoro_lab as kl
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.vocab import encode, known
from kokoro_lab.lab.fixtures import FixtureText, load_texts
from kokoro_lab.lab.gates.intelligibility import load_recogniser
from kokoro_lab.lab.gates.word_errors import published, streamed
from kokoro_lab.metrics.intelligibility import count_errors
from kokoro_lab.metrics.intervals import rate_of
from kokoro_lab.metrics.noninferiority import paired_rise
from kokoro_lab.model.decoder import SegmentRequest
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import normalise
from kokoro_lab.weights.store import voice_names

LANGUAGE = "zh"
CANDIDATES = ("int8", "fp32")
REFERENCE = "misaki"


def spelt(text: str) -> str:
    """The text with its numbers as words, since Whisper writes either 12 or 十二."""
    return normalise(AlignedText.of(text), LANGUAGE).text


def measure(file: Path, rounds: int) -> None:
    """Add what is not in `file` yet, a line a clip."""
    done = set()
    if file.is_file():
        done = {(row["text"], row["voice"]) for row in map(json.loads, file.read_text("utf-8").splitlines())}
    config = replace(EngineConfig.from_settings(), threads=1)
    engines = {name: kl.load_engine(config=replace(config, variant=name)) for name in CANDIDATES}
    whole, misaki, ear = published(config), ZHG2P(), load_recogniser(config)
    voices = [name for name in voice_names() if name.startswith("z")]

    def heard(text: FixtureText, voice: str) -> str:
        ids = encode(known(" ".join(misaki(text.text)[0].split()))[0])
        asked = SegmentRequest(ids, whole.voice(voice).style(len(ids)))
        clips = {REFERENCE: np.concatenate(list(whole.decoder.decode(asked).blocks))}
        clips |= {name: streamed(engine, text.text, voice).samples for name, engine in engines.items()}
        row = {"text": text.id, "kind": text.kind, "voice": voice, "said": text.text}
        row |= {name: ear.transcribe(clip, SAMPLE_RATE_HZ, LANGUAGE) for name, clip in clips.items()}
        return json.dumps(row, ensure_ascii=False) + "\n"

    texts = load_texts("held_out_zh")
    asked = [
        (text, voices[(number + 3 * turn) % len(voices)])
        for turn in range(rounds)
        for number, text in enumerate(texts)
    ]
    left = [(text, voice) for text, voice in asked if (text.id, voice) not in done]
    with file.open("a", encoding="utf-8", buffering=1) as lines, ThreadPoolExecutor(3) as pool:
        lines.writelines(pool.map(heard, *zip(*left, strict=True)) if left else ())


def report(file: Path) -> pd.DataFrame:
    """Character error rates of all clips in percent, and how much higher a stream's is, in points.

    `upper_95` is the one-sided limit of the gates; the last two are the ends of the interval that has two.
    All by a bootstrap over texts.
    """
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    counts = {
        name: [count_errors(spelt(row["said"]), spelt(row[name]), LANGUAGE) for row in rows]
        for name in (REFERENCE, *CANDIDATES)
    }
    texts = [row["text"] for row in rows]
    of = [count.characters for count in counts[REFERENCE]]
    wrong = {name: np.array([count.character_errors for count in each]) for name, each in counts.items()}
    found = []
    for name in CANDIDATES:
        rise = paired_rise(wrong[REFERENCE], wrong[name], of, texts)
        both = rate_of(wrong[name] - wrong[REFERENCE], of, texts)
        percent = [100 * wrong[side].sum() / sum(of) for side in (REFERENCE, name)]
        found.append(
            [
                name,
                len(rows),
                rise.units,
                sum(of),
                *percent,
                *(100 * np.array([rise.value, rise.high, both.low, both.high])),
            ]
        )
    columns = (
        "variant clips texts characters reference_percent percent rise upper_95 low_two_sided high_two_sided"
    )
    return pd.DataFrame(found, columns=columns.split()).set_index("variant")


if __name__ == "__main__":
    kept = Path(sys.argv[1])
    measure(kept, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    sys.stdout.write(report(kept).round(2).T.to_string() + "\n")
