"""Each instruction set of the prebuilt operators on this machine: the same bits, and how fast?

    python scripts/wheels/table.py [--folder FOLDER] [--texts 5] [--variants int8,fp32]

Compares with what this machine builds for itself, in samples, and with kokoro-onnx, in time: interleaved,
text by text, in one process on the same threads. Prints the medians of the ratios. A set that this processor
lacks is said to be compiled and not run. FOLDER has `operators.so` and its record; else Zig compiles it now.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from build import PLATFORMS, SETS, compile_operators

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SettingsError
from kokoro_lab.lab.bench.peers import load_kokoro_onnx
from kokoro_lab.lab.bench.timing import InProcess, Speaker
from kokoro_lab.lab.bench.trial import Listener
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.native import prebuilt
from kokoro_lab.speech.engine import load_engine

TEXTS = (
    "The committee met again on Tuesday.",
    "A quarter to nine, then, and not a minute later.",
    "The river leaves the hills without hurry, and nobody has ever asked it why.",
    "Please hold the line until somebody answers.",
    "Seven boats went out in the morning; all of them came home before the storm.",
)
VOICE = "af_heart"
HERE = "built here"


def rows(variant: str, texts: int) -> list[str]:
    """A line of the table for each instruction set of this architecture."""
    plain = EngineConfig(variant=variant, provider="cpu", first_audio_ttl_s=0)
    lacking: list[str] = []
    speakers: dict[str, Speaker] = {}
    for name in (HERE, *SETS[platform.machine().replace("arm64", "aarch64")]):
        changes = "native=build" if name == HERE else f"native=prebuilt instruction_set={name}"
        try:
            speakers[name] = InProcess(load_engine(config=plain.changed(changes)), VOICE)
        except SettingsError:
            lacking.append(name)
    speakers["peer"] = load_kokoro_onnx(variant, VOICE, plain.thread_count)
    first: dict[str, list[float]] = defaultdict(list)
    whole: dict[str, list[float]] = defaultdict(list)
    heard: dict[str, list[np.ndarray]] = defaultdict(list)
    for speaker in speakers.values():
        speaker.warm()
    for number, text in enumerate(TEXTS[:texts]):
        for name, speaker in speakers.items():
            listener = Listener(keep=True)
            listener.asks()
            speaker.speak(text, listener)
            trial = listener.trial(name, number, len(text), streamed=True)
            first[name].append(trial.ttfa_s)
            whole[name].append(trial.wall_s)
            heard[name].append(listener.samples)
    made = []
    for name in speakers:
        if name != "peer":
            ratios = [
                statistics.median(a / b for a, b in zip(times[name], times["peer"], strict=True))
                for times in (first, whole)
            ]
            same = agreement(heard[name], heard[HERE])
            made.append(f"| {name} | {variant} | {same} | {ratios[0]:.3f} | {ratios[1]:.3f} |")
    return made + [f"| {name} | {variant} | compiled, not run | | |" for name in lacking]


def agreement(found: list[np.ndarray], expected: list[np.ndarray]) -> str:
    """Whether all samples are the same, or the least SNR of a text in dB."""
    pairs = list(zip(found, expected, strict=True))
    if all(np.array_equal(a, b) for a, b in pairs):
        return "same bits"
    if any(len(a) != len(b) for a, b in pairs):
        return "other lengths"
    return f"{min(signal_to_difference_db(a, b) for a, b in pairs):.0f} dB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--texts", type=int, default=len(TEXTS))
    parser.add_argument("--variants", default="int8,fp32")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prebuilt.FOLDER = arguments.folder or Path(folder)
        if arguments.folder is None:
            system = {"Linux": "linux", "Darwin": "macos"}[platform.system()]
            compile_operators(PLATFORMS[f"{system}-{platform.machine()}"], Path(folder))
        lines = [
            "| instruction set | variant | samples | first audio ÷ kokoro-onnx | computing ÷ kokoro-onnx |"
        ]
        lines.append("|---|---|---|---|---|")
        for variant in arguments.variants.split(","):
            lines += rows(variant, arguments.texts)
        print("\n".join(lines))  # noqa: T201


if __name__ == "__main__":
    main()
