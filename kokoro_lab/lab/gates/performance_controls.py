"""Engines that have become slower on purpose, which the performance gate must catch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kokoro_lab.lab.bench.reference import Reference
from kokoro_lab.lab.gates.performance import Spread, judge, measure_speech, spread_of, spreads
from kokoro_lab.lab.gates.performance_bands import FIGURES, Band, Kind
from kokoro_lab.lab.results import NegativeControl
from kokoro_lab.model.decoder import DecodedSegment, Decoder, SegmentRequest
from kokoro_lab.speech.engine import Engine
from kokoro_lab.weights.voices import Voice

TRIALS, NOISE, BUSY_NOISE = 20, 0.03, 0.5
SLOWED_TRIALS = 1
SLEEP = 2
"""Times a reference inference."""
ANY = Kind("any", "any", "any", 1, "any")


class SlowDecoder:
    """A decoder that sleeps before every segment; else it is `decoder`."""

    def __init__(self, decoder: Decoder, sleep_s: float) -> None:
        self._decoder = decoder
        self._sleep_s = sleep_s

    @property
    def details(self) -> Mapping[str, str]:
        return self._decoder.details

    def predicts(self, voice: Voice) -> str | None:
        return self._decoder.predicts(voice)

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        time.sleep(self._sleep_s)
        return self._decoder.decode(asked)


def slowed(engine: Engine, sleep_s: float) -> Engine:
    """The same engine, which sleeps for `sleep_s` before it decodes a segment."""
    return Engine(replace(engine.parts, decoder=SlowDecoder(engine.decoder, sleep_s)))


def slowed_control(
    engine: Engine, reference: Reference, voice: str, found: Mapping[str, Spread], trials: int = SLOWED_TRIALS
) -> NegativeControl:
    """A real engine that sleeps for twice a reference inference, against a band of what it was.

    So long a sleep at least doubles the figures: that it is caught does not depend on how busy a machine is.
    """
    sleep_s = SLEEP * reference.infer().seconds
    table = measure_speech(slowed(engine, sleep_s), reference, voice, trials, warm=False, progress=False)
    asleep = spreads(table)
    band = Band(ANY, {name: of.ratio for name, of in found.items()})
    caught = all(
        not check.passed for check in judge(asleep, band) if check.name.endswith("over_band_at_least_ratio")
    )
    return NegativeControl("an engine that sleeps before every segment, in every figure of speech", caught)


def made_up_controls(seed: int = 0) -> list[NegativeControl]:
    """Ratios with a little noise, all on their band but for one fault; and some that must pass."""
    golden = Band(ANY, dict.fromkeys(FIGURES, 0.4))
    found = [
        NegativeControl(f"passes: {name}", _passes(_made_up(change, NOISE, seed), golden))
        for name, change in HARMLESS.items()
    ]
    found += [
        NegativeControl(name, not _passes(_made_up(change, NOISE, seed), golden))
        for name, change in FAULTS.items()
    ]
    busy = _made_up(dict.fromkeys(FIGURES, 1.15), BUSY_NOISE, seed)
    found.append(
        NegativeControl("a machine so busy that 15 % cannot be told from noise", not _passes(busy, golden))
    )
    lacking = _made_up({}, NOISE, seed)
    lacking.pop("memory")
    return [*found, NegativeControl("a figure that was not measured", not _passes(lacking, golden))]


HARMLESS: dict[str, dict[str, float]] = {
    "what is as it was": {},
    "everything 5 % slower": dict.fromkeys(FIGURES, 1.05),
    "everything twice as fast": dict.fromkeys(FIGURES, 0.5),
}
"""Factor by figure."""
FAULTS: dict[str, dict[str, float]] = {f"{figure} 15 % over its band": {figure: 1.15} for figure in FIGURES}


def _made_up(change: Mapping[str, float], noise: float, seed: int) -> dict[str, Spread]:
    draw = np.random.default_rng(seed)
    return {
        figure: spread_of(list(0.4 * change.get(figure, 1.0) * draw.lognormal(0, noise, TRIALS)))
        for figure in FIGURES
    }


def _passes(found: Mapping[str, Spread], band: Band) -> bool:
    return all(check.passed for check in judge(found, band))
