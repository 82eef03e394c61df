"""What every streaming processor promises."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.dsp import Dither, EdgeTrimmer, Gain, Limiter, Processor, Resampler, require_finite
from kokoro_lab.errors import ParameterError, SynthesisError
from tests.dsp.signals import RATE_HZ, in_blocks, noise, partitions, silence_speech_silence, torture

PROCESSORS: dict[str, Callable[[], Processor]] = {
    "trim": lambda: EdgeTrimmer(RATE_HZ),
    "trim, holding 60 ms": lambda: EdgeTrimmer(RATE_HZ, max_hold_s=0.06),
    "gain": lambda: Gain(-3.3),
    "limit": lambda: Limiter(RATE_HZ),
    "limit, odd window": lambda: Limiter(11_000),
    "dither": lambda: Dither(3),
    "resample to 22.05": lambda: Resampler(RATE_HZ, 22_050),
    "resample to 24": lambda: Resampler(RATE_HZ, 24_000),
    "resample to 44.1": lambda: Resampler(RATE_HZ, 44_100),
    "resample to 48": lambda: Resampler(RATE_HZ, 48_000),
    "resample from 48 to 24": lambda: Resampler(48_000, 24_000),
}
SIGNALS = {
    "speech in silence": silence_speech_silence(),
    "noise that jumps in level": torture(4.0)["noise that jumps in level"],
    "fewer samples than any latency": noise(2.0, 5 / RATE_HZ),
}


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("name", PROCESSORS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_blocks_do_not_matter_to_the_last_bit(name: str, signal: str, data: st.DataObject) -> None:
    samples, make = SIGNALS[signal], PROCESSORS[name]
    whole = make().run(samples)
    joined = in_blocks(make(), samples, data.draw(partitions(len(samples))))
    assert joined.dtype == whole.dtype
    assert np.array_equal(joined, whole)
    assert np.array_equal(np.signbit(joined), np.signbit(whole))


@pytest.mark.parametrize("block", [61, 480, 1200, 2401])
@pytest.mark.parametrize("name", PROCESSORS)
def test_even_blocks_are_as_good_as_any(name: str, block: int) -> None:
    samples, make = SIGNALS["speech in silence"], PROCESSORS[name]
    blocks = [slice(start, start + block) for start in range(0, len(samples), block)]
    assert np.array_equal(in_blocks(make(), samples, blocks), make().run(samples))


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_long_signal_run_at_once_is_the_same_as_in_blocks(name: str) -> None:
    samples = noise(1.0, 6.0)  # longer than the blocks that `run` makes
    blocks = [slice(start, start + 1200) for start in range(0, len(samples), 1200)]
    make = PROCESSORS[name]
    assert np.array_equal(make().run(samples), in_blocks(make(), samples, blocks))


@pytest.mark.parametrize("name", [name for name in PROCESSORS if not name.startswith("resample")])
def test_memory_does_not_grow_with_the_stream(name: str) -> None:
    processor = PROCESSORS[name]()
    sizes = []
    for seed in range(40):
        for loud in (1.0, 1e-6):
            processor.push(noise(loud, 0.25, seed))
        sizes.append(len(pickle.dumps(processor)))
    assert max(sizes[20:]) <= max(sizes[:20]) + 64


@pytest.mark.parametrize("name", PROCESSORS)
def test_nothing_in_nothing_out(name: str) -> None:
    empty = np.zeros(0, dtype=np.float32)
    processor = PROCESSORS[name]()
    assert processor.push(empty).shape == (0,)
    assert processor.flush().shape == (0,)


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_callers_block_is_neither_changed_nor_kept(name: str) -> None:
    block = noise(2.0, 0.2)
    before = block.copy()
    processor = PROCESSORS[name]()
    out = processor.push(block)
    given = out.copy()
    assert np.array_equal(block, before)
    block[:] = 0.25
    assert np.array_equal(out, given)
    assert np.array_equal(np.concatenate([out, processor.flush()]), PROCESSORS[name]().run(before))


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_spent_processor_refuses(name: str) -> None:
    processor = PROCESSORS[name]()
    processor.flush()
    with pytest.raises(RuntimeError, match="flushed"):
        processor.push(np.zeros(1, dtype=np.float32))
    with pytest.raises(RuntimeError, match="flushed"):
        processor.flush()


@pytest.mark.parametrize("bad", [np.zeros(4), np.zeros((4, 1), np.float32), np.zeros(4, np.int16)])
def test_only_float32_mono_is_taken(bad: np.ndarray) -> None:
    with pytest.raises(ParameterError) as caught:
        Gain(0.0).push(bad)
    assert caught.value.allowed == "float32, 1-D (mono)"


def test_samples_that_are_not_finite_are_refused_with_count_and_place() -> None:
    bad = np.zeros(100, dtype=np.float32)
    bad[[7, 50]] = np.nan, -np.inf
    with pytest.raises(SynthesisError, match=r"segment 3: 2 of 100 samples .* first at 7"):
        require_finite(bad, "segment 3")
    with pytest.raises(SynthesisError, match="Limiter"):
        Limiter(RATE_HZ).push(bad)
    require_finite(bad[51:], "the rest")
    require_finite(bad[:0], "nothing")


def test_the_place_of_a_bad_frame_is_counted_in_frames() -> None:
    stereo = np.zeros((10, 2))
    stereo[4] = np.nan
    with pytest.raises(SynthesisError, match=r"1 of 10 samples .* first at 4"):
        require_finite(stereo, "stereo")


@pytest.mark.parametrize("make", [Limiter, EdgeTrimmer])
@pytest.mark.parametrize("rate", [0, 7_999, 192_001])
def test_a_rate_that_is_no_rate_is_refused(make: Callable[[int], Processor], rate: int) -> None:
    with pytest.raises(ParameterError) as caught:
        make(rate)
    assert (caught.value.field, caught.value.value) == ("sample_rate", rate)
