"""Measure what lengthened pauses do: to the words that are understood, and to the pauses of each language.

`python scripts/pauses_heard.py words FILE` lets two English voices speak the sentences of
`fixtures/texts/marks.jsonl`, with lengthened pauses and with the model's own, and Whisper writes both down
(about half an hour on one core). `python scripts/pauses_heard.py lengths FILE` measures the pauses of one
voice a language, with both settings (about 10 minutes). What is measured is kept in FILE, so that a run that
was interrupted goes on.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd

import kokoro_lab as kl
from kokoro_lab.config import Pauses
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.fixtures import FixtureText, load_rows
from kokoro_lab.lab.gates import pauses
from kokoro_lab.lab.gates.intelligibility import error_percent, load_recogniser, rise, understood
from kokoro_lab.lab.gates.word_errors import streamed
from kokoro_lab.metrics.intervals import rate_of

ENGLISH_VOICES = ("af_heart", "bm_george")
VOICES = {
    "en": "af_heart",
    "es": "ef_dora",
    "fr": "ff_siwis",
    "it": "if_sara",
    "pt": "pf_dora",
    "hi": "hf_alpha",
    "ja": "jf_alpha",
    "zh": "zf_xiaoxiao",
}
LENGTH_TEXTS = 10
SETTINGS: tuple[Pauses, ...] = ("model", "lengthened")


def engine_with(setting: Pauses) -> kl.Engine:
    """An engine with this value of `KOKORO_PAUSES`."""
    config = replace(EngineConfig.from_settings(), pauses=setting, threads=1)
    return kl.load_engine(config=config)


def sentences(language: str) -> list[FixtureText]:
    """The sentences of a language in which nearly every phrase ends with a mark."""
    rows = [row for row in load_rows("marks") if row["language"] == language]
    return [FixtureText(row["id"], language, row["text"]) for row in rows]


def words(file: Path) -> pd.DataFrame:
    """Words misheard with lengthened pauses and with the model's own, in percent; the difference in points,
    with the ends of its 95 % interval and the gates' one-sided limit. The bootstrap draws texts."""
    kept = file.read_text("utf-8").splitlines() if file.is_file() else []
    done = {(row["text"], row["voice"]) for row in map(json.loads, kept)}
    engines = {"candidate": engine_with("lengthened"), "reference": engine_with("model")}
    recogniser = load_recogniser(engines["candidate"].config)
    with file.open("a", encoding="utf-8", buffering=1) as lines:
        for text in sentences("en"):
            for voice in ENGLISH_VOICES:
                if (text.id, voice) not in done:
                    clips = {side: streamed(engine, text.text, voice) for side, engine in engines.items()}
                    row = {"text": text.id, "voice": voice} | understood(clips, text.text, recogniser)
                    lines.write(json.dumps(row) + "\n")
    table = pd.read_json(file, lines=True)
    found = {}
    for voice, rows in [("both", table), *table.groupby("voice")]:
        change = rows.word_errors_candidate - rows.word_errors_reference
        both = rate_of(change, rows.words, list(rows.text))
        found[voice] = {
            "clips": len(rows),
            "words": rows.words.sum(),
            "lengthened_percent": error_percent(rows, "word", "candidate"),
            "model_percent": error_percent(rows, "word", "reference"),
            "difference_points": 100 * both.value,
            "low": 100 * both.low,
            "high": 100 * both.high,
            "upper_95": 100 * rise(rows).high,
        }
    return pd.DataFrame(found)


def lengths(file: Path) -> pd.DataFrame:
    """For each language and setting: how many pauses within segments there are, the shares that are shorter
    and longer than promised, and percentiles of their length in ms."""
    kept = file.read_text("utf-8").splitlines() if file.is_file() else []
    done = {(row["language"], row["setting"]) for row in map(json.loads, kept)}
    engines = {setting: engine_with(setting) for setting in SETTINGS}
    with file.open("a", encoding="utf-8", buffering=1) as lines:
        for language, voice in VOICES.items():
            texts = [text.text for text in sentences(language)[:LENGTH_TEXTS]]
            for setting, engine in engines.items():
                if (language, setting) not in done:
                    table = pauses.measure(engine, [voice], texts).assign(language=language, setting=setting)
                    lines.write(table.to_json(orient="records", lines=True))
    table = pd.read_json(file, lines=True)
    by = table[table.place == "within"].groupby(["language", "setting"], sort=False)
    heard = by.heard_ms.quantile([0.05, 0.5, 0.95]).unstack().round(0)
    return by.size().to_frame("pauses").join(by[["short", "long"]].mean()).join(heard)


if __name__ == "__main__":
    pd.set_option("display.width", 200)
    found = {"words": words, "lengths": lengths}[sys.argv[1]](Path(sys.argv[2]))
    sys.stdout.write(found.round(2).to_string() + "\n")
