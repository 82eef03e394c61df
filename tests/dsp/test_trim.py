"""Trimming: edges go, pauses stay, nothing clicks, and timings can be mended."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.dsp import EdgeTrimmer, silence
from kokoro_lab.errors import ParameterError
from tests.dsp.signals import RATE_HZ, Samples, noise, silence_speech_silence, speech_like, tone

THRESHOLD = 10 ** (-54 / 20)
KEEP_LEAD, KEEP_TAIL, FADE = 720, 1200, 120  # 30, 50 and 5 ms


def speech_from_to(samples: Samples) -> tuple[int, int]:
    loud = np.flatnonzero(np.abs(samples) >= THRESHOLD)
    return int(loud[0]), int(loud[-1]) + 1


def test_silence_at_the_edges_goes_but_for_what_is_kept() -> None:
    samples = silence_speech_silence()
    start, end = speech_from_to(samples)
    trimmer = EdgeTrimmer(RATE_HZ)
    trimmed = trimmer.run(samples)
    assert trimmer.lead_samples == start - KEEP_LEAD
    assert trimmer.tail_samples == len(samples) - end - KEEP_TAIL
    assert len(trimmed) == len(samples) - trimmer.lead_samples - trimmer.tail_samples


def test_everything_between_the_fades_is_exactly_as_it_was_pauses_included() -> None:
    samples = silence_speech_silence()
    trimmer = EdgeTrimmer(RATE_HZ)
    trimmed = trimmer.run(samples)
    original = samples[trimmer.lead_samples :][: len(trimmed)]
    assert np.array_equal(trimmed[FADE:-FADE], original[FADE:-FADE])


def test_a_cut_edge_fades_so_that_it_cannot_click() -> None:
    floor = noise(THRESHOLD / 6, 2.0)  # as loud as silence may be
    floor[20_000:24_000] += speech_like(4000 / RATE_HZ)
    trimmer = EdgeTrimmer(RATE_HZ)
    trimmed = trimmer.run(floor)
    original = floor[trimmer.lead_samples :][: len(trimmed)]
    gain_in, gain_out = trimmed[:FADE] / original[:FADE], trimmed[-FADE:] / original[-FADE:]
    for gain in (gain_in, gain_out[::-1]):
        assert 0 < gain[0] < 0.001
        assert gain[-1] > 0.999
        assert np.all(np.diff(gain) > 0)
        assert gain[FADE // 2] == pytest.approx(0.5, abs=0.02)
    assert abs(trimmed[0]) < THRESHOLD / 1000
    assert abs(trimmed[-1]) < THRESHOLD / 1000


def test_edges_that_need_no_cut_are_not_touched() -> None:
    samples = speech_like(0.5)
    samples[:KEEP_LEAD] = samples[-KEEP_TAIL:] = 1e-4
    samples[KEEP_LEAD], samples[-KEEP_TAIL - 1] = 0.1, 0.1
    trimmer = EdgeTrimmer(RATE_HZ)
    assert np.array_equal(trimmer.run(samples), samples)
    assert (trimmer.lead_samples, trimmer.tail_samples) == (0, 0)


def test_one_sample_more_than_is_kept_is_cut() -> None:
    samples = np.full(KEEP_LEAD + 1 + 1 + KEEP_TAIL + 1, 1e-4, dtype=np.float32)
    samples[KEEP_LEAD + 1] = 0.5
    trimmer = EdgeTrimmer(RATE_HZ)
    assert len(trimmer.run(samples)) == len(samples) - 2
    assert (trimmer.lead_samples, trimmer.tail_samples) == (1, 1)


def test_a_soft_onset_is_not_eaten() -> None:
    """A fricative at -45 dBFS that swells over 60 ms: all but its first -58 dB are kept."""
    samples = noise(1e-5, 1.0)
    fricative = noise(10 ** (-45 / 20), 0.2, seed=5) * np.minimum(1, np.arange(4800) / 1440)
    samples[12_000:16_800] += fricative.astype(np.float32)
    trimmer = EdgeTrimmer(RATE_HZ)
    trimmer.run(samples)
    lost = samples[12_000 : max(12_000, trimmer.lead_samples + FADE)]
    assert np.sum(lost**2) <= 1e-4 * np.sum(fricative**2)


def test_the_lead_that_was_dropped_is_known_with_the_first_output() -> None:
    samples = silence_speech_silence()
    start, _ = speech_from_to(samples)
    trimmer = EdgeTrimmer(RATE_HZ)
    for at in range(0, len(samples), 1200):
        if len(trimmer.push(samples[at : at + 1200])):
            break
    assert trimmer.lead_samples == start - KEEP_LEAD


def test_speech_is_not_held_back() -> None:
    trimmer = EdgeTrimmer(RATE_HZ)
    speech = tone(200, 0.3, 0.5)
    assert np.array_equal(trimmer.push(speech), speech)


@pytest.mark.parametrize("samples", [noise(1e-4, 1.0), np.zeros(100, np.float32)], ids=["floor", "zeros"])
def test_without_speech_nothing_is_left(samples: Samples) -> None:
    trimmer = EdgeTrimmer(RATE_HZ)
    assert trimmer.run(samples).shape == (0,)
    assert trimmer.lead_samples == len(samples)
    assert trimmer.tail_samples == 0


def test_a_silence_too_long_to_hold_goes_out_as_a_pause() -> None:
    samples = np.concatenate([tone(200, 0.3, 0.1), np.zeros(RATE_HZ, np.float32), tone(200, 0.3, 0.1)])
    assert np.array_equal(EdgeTrimmer(RATE_HZ, max_hold_s=0.2).run(samples), samples)
    trimmer = EdgeTrimmer(RATE_HZ, max_hold_s=0.2)
    trimmed = trimmer.run(samples[: 2400 + RATE_HZ])
    assert trimmer.tail_samples == 4800 - FADE  # of the 0.2 s that it held
    assert np.array_equal(trimmed, samples[: len(trimmed)])


def test_what_is_kept_can_be_chosen_and_fades() -> None:
    samples = np.full(9000, 1e-4, dtype=np.float32)
    samples[4000:5000] = 0.5
    trimmer = EdgeTrimmer(RATE_HZ, keep_lead_s=0.0, keep_tail_s=0.001)
    trimmed = trimmer.run(samples)
    assert len(trimmed) == 1000 + 24
    assert np.all(trimmed[:1000] == 0.5)  # nothing was kept that could fade
    assert trimmed[-1] < 1e-6


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("keep_lead_s", -0.1),
        ("keep_tail_s", float("nan")),
        ("click_after_s", -0.1),
        ("click_s", float("nan")),
        ("max_hold_s", 0.01),
    ],
)
def test_a_parameter_out_of_range_is_named(field: str, value: float) -> None:
    with pytest.raises(ParameterError) as caught:
        EdgeTrimmer(RATE_HZ, **{field: value})
    assert caught.value.field == field


def test_silence_is_as_long_as_asked_for() -> None:
    pause = silence(0.15, RATE_HZ)
    assert pause.dtype == np.float32
    assert pause.shape == (3600,)
    assert not pause.any()
    assert silence(0.0, RATE_HZ).shape == (0,)
    for bad in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="pause"):
            silence(bad, RATE_HZ)
    with pytest.raises(ParameterError, match="rate"):
        silence(0.1, 0)


def test_entered_in_the_middle_the_rest_is_that_of_the_whole() -> None:
    samples = silence_speech_silence()
    start, end = speech_from_to(samples)
    whole = EdgeTrimmer(RATE_HZ)
    trimmed = whole.run(samples)
    for at in (start + 500, (start + end) // 2, end - 1000):
        later = EdgeTrimmer(RATE_HZ)
        assert later.hears(samples[at:])
        later.enter(whole.lead_samples)
        assert np.array_equal(later.run(samples[at:]), trimmed[at - whole.lead_samples :])
        assert later.lead_samples == whole.lead_samples
        assert later.kept_tail_samples == whole.kept_tail_samples


def test_a_block_without_speech_is_not_heard() -> None:
    assert not EdgeTrimmer(RATE_HZ).hears(silence(1.0, RATE_HZ))
    click = tone(2000, 0.02, 0.005)
    assert not EdgeTrimmer(RATE_HZ).hears(click), "it might be dropped"


def ended_by(silent_s: float, sound: Samples) -> Samples:
    """Speech of 0.3 s, a silence, a sound and what the model adds behind it."""
    blocks = (tone(200, 0.3, 0.3), silence(silent_s, RATE_HZ), sound, silence(0.065, RATE_HZ))
    return np.concatenate(blocks).astype(np.float32)


CLICK = tone(2000, 0.02, 0.02)  # -34 dBFS


@pytest.mark.parametrize("block", [1, 77, 600, 100_000])
def test_a_click_of_the_model_behind_the_last_word_is_dropped(block: int) -> None:
    samples = ended_by(0.5, CLICK)
    _, end = speech_from_to(samples[:8000])
    trimmer = EdgeTrimmer(RATE_HZ)
    blocks = [trimmer.push(samples[at : at + block]) for at in range(0, len(samples), block)]
    trimmed = np.concatenate([*blocks, trimmer.flush()])
    assert len(trimmed) == end + KEEP_TAIL
    assert trimmer.kept_tail_samples == KEEP_TAIL
    assert trimmer.tail_samples == len(samples) - len(trimmed)
    assert np.array_equal(trimmed[:-FADE], samples[: len(trimmed) - FADE])


@pytest.mark.parametrize(
    ("silent_s", "sound"),
    [
        (0.14, CLICK),  # a plosive comes so soon
        (0.5, tone(2000, 0.05, 0.02)),  # -26 dBFS
        (0.5, tone(2000, 0.02, 0.09)),  # a soft word
        (0.5, np.concatenate([CLICK, silence(0.5, RATE_HZ), tone(200, 0.2, 0.3)])),  # speech goes on
    ],
    ids=["soon", "loud", "long", "not the last"],
)
@pytest.mark.parametrize("block", [77, 600, 100_000])
def test_what_may_be_speech_is_kept(silent_s: float, sound: Samples, block: int) -> None:
    samples = ended_by(silent_s, sound)
    trimmer = EdgeTrimmer(RATE_HZ)
    blocks = [trimmer.push(samples[at : at + block]) for at in range(0, len(samples), block)]
    trimmed = np.concatenate([*blocks, trimmer.flush()])
    _, end = speech_from_to(samples)
    assert len(trimmed) == end + KEEP_TAIL
    assert np.array_equal(trimmed[:-FADE], samples[: len(trimmed) - FADE])


def test_a_soft_short_sound_alone_is_no_click() -> None:
    alone = np.concatenate([silence(0.5, RATE_HZ), CLICK, silence(0.2, RATE_HZ)])
    assert len(EdgeTrimmer(RATE_HZ).run(alone)) > len(CLICK)


def test_a_click_behind_a_pause_too_long_to_hold_is_dropped_all_the_same() -> None:
    samples = ended_by(1.0, CLICK)
    trimmed = EdgeTrimmer(RATE_HZ, max_hold_s=0.2).run(samples)
    assert np.abs(trimmed[8000:]).max() < THRESHOLD
