"""Windows in one pass: laid end to end they are the same windows, and gains are told with who waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.lab.research import batched
from kokoro_lab.lab.research.batched import HALF_MORE, IN_TURN, ONE_PASS, SpokenSegment
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.model.prosody import Prosody
from kokoro_lab.model.windows import CONTEXT_FRAMES

FRAMES, REACH = 200, 8


def decoding(prosody: Prosody, scale: Any, shift: Any, audible: Any) -> Any:
    """A vocoder that sees `REACH` frames on both sides, and takes what it is not given for 0."""

    def decode(span: tuple[int, int]) -> Any:
        start, stop = span
        a, b = max(0, start - CONTEXT_FRAMES), min(prosody.frames, stop + CONTEXT_FRAMES)
        loud = np.convolve(prosody.trunk[0, 0, a:b], np.ones(2 * REACH + 1), "same")
        samples = np.repeat(loud, 300) + prosody.excitation[0, 300 * a : 300 * b]
        return samples[300 * (start - a) : 300 * (stop - a)].astype(np.float32)

    return decode


@pytest.fixture
def decoder() -> StagedDecoder:
    return cast(StagedDecoder, SimpleNamespace(vocoder=SimpleNamespace(decoding=decoding)))


@pytest.fixture
def segment() -> SpokenSegment:
    random = np.random.default_rng(0)
    curve = np.zeros(FRAMES, np.float32)
    trunk = random.normal(size=(1, 512, FRAMES)).astype(np.float32)
    excitation = random.normal(size=(1, 300 * FRAMES + 20)).astype(np.float32)
    made = Prosody(np.full(50, 2), curve, curve, trunk, excitation, np.zeros((1, 256), np.float32))
    return SpokenSegment((), made, curve, curve)


def test_windows_in_one_pass_are_those_in_turn(decoder: StagedDecoder, segment: SpokenSegment) -> None:
    spans = segment.spans(40, 3, CONTEXT_FRAMES)
    assert spans == [(10, 50), (80, 120), (150, 190)]
    laid = batched.one_pass(decoder, segment, spans)
    for one, other in zip(laid, batched.in_turn(decoder, segment, spans), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert batched.least_snr_db(decoder, [segment], CONTEXT_FRAMES) > 100
    assert batched.least_snr_db(decoder, [segment], 0) < 20


def test_what_is_too_short_for_a_window_is_not_measured(
    decoder: StagedDecoder, segment: SpokenSegment
) -> None:
    assert segment.fits(180)
    assert not segment.fits(181)
    trials = batched.measure(decoder, [segment], [40, 500], [2], rounds=2)
    assert set(trials.frames) == {40}
    assert len(trials) == 6


def trials(one_pass_s: float) -> pd.DataFrame:
    noise = np.random.default_rng(1)
    seconds = {IN_TURN: 0.1, ONE_PASS: one_pass_s, HALF_MORE: 1.5 * one_pass_s}
    rows = [
        {"system": name, "text_number": number, "round": turn, "repetition": 0, "frames": 11, "count": 4}
        | dict.fromkeys(("wall_s", "compute_s"), each * noise.uniform(0.99, 1.01))
        for number in range(5)
        for turn in range(2)
        for name, each in seconds.items()
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("one_pass_s", "said"), [(0.07, "worth it"), (0.095, "not worth it")])
def test_a_batch_is_worth_it_where_it_saves_enough(
    decoder: StagedDecoder, segment: SpokenSegment, one_pass_s: float, said: str
) -> None:
    measured = trials(one_pass_s)
    table = batched.gains(measured)
    assert table.ratio[0] == pytest.approx(10 * one_pass_s, rel=0.02)
    assert table.first_wait_ratio[0] == pytest.approx(40 * one_pass_s, rel=0.02)
    assert table.mean_wait_ratio[0] == pytest.approx(16 * one_pass_s, rel=0.02)
    assert batched.verdict(table).startswith(said)
    assert all(control.caught for control in batched.controls(decoder, [segment], measured))
    assert all(check.passed for check in batched.checks_of(90.0, table))
    held = pd.DataFrame({"count": [1, 4], "more_mb": [10.0, 30.0]})
    assert batched.figures_of(table, held)["4_windows_more_mb"] == 30
    assert list(batched.drawn(table).index) == ["4 windows of 138 ms"]
