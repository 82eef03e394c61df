"""The perceptual gate: what it lets pass, what it must not, and which check is there for which fault."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.clips import worst_first
from kokoro_lab.lab.fixtures import FixtureText
from kokoro_lab.lab.gates import perceptual, speaking
from kokoro_lab.lab.gates.measures import (
    DNSMOS,
    DURATION,
    ENERGY_SHAPE,
    F0,
    F0_SHAPE,
    LSD,
    MEASURES,
    PAUSES,
    PESQ,
    SPEAKER,
    STOI,
    Measure,
    PerceptualPair,
)
from kokoro_lab.lab.gates.perceptual import CAUGHT_BY, HOLM_CHECK, LENGTH_CHECK, MISREAD
from kokoro_lab.lab.gates.speaking import SpokenPair
from kokoro_lab.lab.listening import PassagePair
from kokoro_lab.metrics.prosody import ProsodyReading
from kokoro_lab.metrics.speaker import VoiceEncoder
from kokoro_lab.speech.engine import Engine

ALIGNED = (PESQ, STOI, LSD)

needs_dnsmos = pytest.mark.skipif(
    find_spec("speechmos") is None, reason="DNSMOS needs the extra `quality`, which is not installed"
)


class Ear:
    """An `Embedder` that takes every recording for the same voice."""

    def embed(self, samples: np.ndarray, sample_rate_hz: int) -> np.ndarray:
        return np.array([1.0, 0.0], np.float32)


@pytest.fixture(scope="module")
def compared() -> list[PerceptualPair]:
    """Three passages of speech, each as its own candidate."""
    samples, rate_hz = soundfile.read(Path(__file__).parents[2] / "metrics/speech.flac", dtype="float32")
    third = len(samples) // 3
    found = []
    for i in range(3):
        part = samples[i * third : (i + 1) * third]
        pair = SpokenPair(
            f"text {i}", "af_heart", PassagePair(f"text {i}", part, part.copy(), rate_hz), "", slice(0)
        )
        reading = ProsodyReading(
            np.array([2, 4, 3]), np.full(18, 180, np.float32), np.full(18, 3, np.float32)
        )
        found.append(PerceptualPair(pair, pair, reading, reading))
    return found


def candidates(compared: list[PerceptualPair], damage, *, forced: bool) -> list[PerceptualPair]:  # type: ignore[no-untyped-def]
    name = "forced" if forced else "own"
    damaged = [
        (each := getattr(c, name))._replace(
            pair=replace(each.pair, candidate=damage(each.pair.reference).astype(np.float32))
        )
        for c in compared
    ]
    return [c._replace(**{name: pair}) for c, pair in zip(compared, damaged, strict=True)]


def failed(compared: list[PerceptualPair], measures: tuple[Measure, ...]) -> set[str]:
    table = perceptual.measure(compared, Ear(), measures)
    return {check.name for check in perceptual.judge(table, measures) if not check.passed}


def test_a_candidate_that_is_the_reference_passes(compared: list[PerceptualPair]) -> None:
    assert failed(compared, (*ALIGNED, SPEAKER, DURATION, F0, F0_SHAPE, ENERGY_SHAPE, PAUSES)) == set()


@pytest.mark.parametrize(
    ("fault", "measures"), [(n, m) for n, (_, _, m) in CAUGHT_BY.items() if DNSMOS not in m]
)
def test_each_fault_fails_the_check_that_is_there_for_it(
    compared: list[PerceptualPair], fault: str, measures: tuple[Measure, ...]
) -> None:
    damage, check, _ = CAUGHT_BY[fault]
    damaged = candidates(candidates(compared, damage, forced=True), damage, forced=False)
    assert check in failed(damaged, measures)


@needs_dnsmos
def test_noise_is_heard_without_a_reference(compared: list[PerceptualPair]) -> None:
    damage, check, measures = CAUGHT_BY["noise at 20 dB SNR costs DNSMOS"]
    assert check in failed(candidates(compared, damage, forced=False), measures)
    assert failed(compared, measures) == set()


def test_forced_clips_of_another_length_are_not_measured_and_never_pass(
    compared: list[PerceptualPair],
) -> None:
    shorter = candidates(compared, lambda samples: samples[:-1], forced=True)
    table = perceptual.measure(shorter, Ear(), ALIGNED)
    assert table.pesq_candidate.isna().all()
    expected = {LENGTH_CHECK, HOLM_CHECK, *(one.check for one in ALIGNED)}
    assert {c.name for c in perceptual.judge(table, ALIGNED) if not c.passed} == expected


def test_one_pair_that_cannot_be_measured_fails_the_whole(compared: list[PerceptualPair]) -> None:
    one = candidates(compared[:1], lambda samples: samples[:-1], forced=True)
    assert failed([*one, *compared[1:]], (STOI,)) >= {STOI.check, HOLM_CHECK}


def test_pitch_and_length_may_differ_by_less_than_three_percent(compared: list[PerceptualPair]) -> None:
    def moved(cents: float) -> list[PerceptualPair]:
        f0_hz = np.full(18, 180 * 2 ** (cents / 1200), np.float32)
        return [c._replace(candidate_reading=c.reference_reading._replace(f0_hz=f0_hz)) for c in compared]

    assert failed(moved(45), (F0,)) == set()
    assert F0.check in failed(moved(55), (F0,))
    assert F0.check in failed(moved(-55), (F0,))
    assert (
        failed(candidates(compared, lambda s: s[: round(0.98 * len(s))], forced=False), (DURATION,)) == set()
    )
    assert DURATION.check in failed(
        candidates(compared, lambda s: s[: round(0.96 * len(s))], forced=False), (DURATION,)
    )


def melody(kept: float = 1.0) -> ProsodyReading:
    """Three words that rise and fall, and a pause of 0.2 s behind each."""
    half = np.concatenate([np.sin(np.linspace(0, 3 * np.pi, 24)), np.zeros(16)])
    spoken = np.tile(np.arange(40) < 24, 3)
    f0_hz = np.where(spoken, 180 * 2 ** (0.3 * kept * np.tile(half, 3)), 0)
    energy = np.where(spoken, 3 + np.tile(half, 3), -9)
    energy[-16:] = np.nan
    return ProsodyReading(np.tile([12, 8], 3), f0_hz.astype(np.float32), energy.astype(np.float32))


@pytest.mark.parametrize("fault", MISREAD)
def test_a_text_that_is_misread_fails_the_measure_that_is_there_for_it(
    compared: list[PerceptualPair], fault: str
) -> None:
    misread, measure = MISREAD[fault]
    pairs = [c._replace(reference_reading=melody(), candidate_reading=misread(melody())) for c in compared]
    assert measure.check in failed(pairs, (measure,))
    others = {F0_SHAPE, ENERGY_SHAPE, PAUSES} - {measure}
    assert failed(pairs, tuple(others)) == set()


def test_the_silence_around_a_segment_is_no_part_of_its_reading() -> None:
    energy = np.array([-9, -8, 2, -9, 1, -9], np.float32)
    np.testing.assert_array_equal(speaking._inside(energy), [np.nan, np.nan, 2, -9, 1, np.nan])
    assert np.isnan(speaking._inside(energy[:2])).all()


def test_the_median_distance_in_pitch_does_not_notice_a_monotone(compared: list[PerceptualPair]) -> None:
    """So the shape has a measure of its own."""
    misread, _ = MISREAD["read in monotone in the last third"]
    pairs = [c._replace(reference_reading=melody(), candidate_reading=misread(melody())) for c in compared]
    assert failed(pairs, (F0,)) == set()


def figures(losses: dict[str, float]) -> pd.DataFrame:
    """A table of ten texts in which each measure loses about as much as `losses` says."""
    random = np.random.default_rng(0)
    columns = {f"{one.name}_reference": np.ones(10) for one in MEASURES}
    columns |= {
        f"{one.name}_candidate": 1 - losses.get(one.name, 0) + random.normal(0, 0.003, 10) for one in MEASURES
    }
    return pd.DataFrame(columns).assign(text=[f"text {i}" for i in range(10)], forced_length_difference_s=0.0)


def test_the_family_is_judged_together() -> None:
    assert all(check.passed for check in perceptual.judge(figures({})))
    table = figures({"stoi": 0.028, "pesq": 0.028, "f0": 0.028})
    family = perceptual.changes(table)
    each = family.p[["stoi", "pesq", "f0"]]
    assert (family.holm_p >= family.p).all()
    assert family.holm_p["f0"] > each["f0"]
    assert (family.mean_percent["stoi"], family.margin_percent["speaker"]) == (
        pytest.approx(-2.8, abs=0.3),
        -5,
    )
    worse = {c.name for c in perceptual.judge(figures({"dnsmos": 0.05})) if not c.passed}
    assert worse == {DNSMOS.check, HOLM_CHECK}


def test_the_pair_that_lost_most_is_found_as_its_measure_heard_it(
    compared: list[PerceptualPair], monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = candidates(compared[1:2], lambda samples: samples * np.float32(0.5), forced=True)
    given = [compared[0], *quiet, compared[2]]
    table = perceptual.measure(given, Ear(), (LSD, DURATION))
    monkeypatch.setattr(perceptual, "MEASURES", (LSD, DURATION))
    first, *others = worst_first(perceptual.judged_clips(given, table))
    assert first.name == f"{quiet[0].forced.pair.name}, forced"
    assert first.candidate().samples is quiet[0].forced.pair.candidate
    assert first.badness > 1 > others[0].badness


def test_a_variant_that_runs_as_one_graph_cannot_say_how_high_it_speaks(hum: Engine) -> None:
    text = FixtureText("t", "t", "Ah.")
    with pytest.raises(ParameterError, match="one graph"):
        speaking.read(hum, text, "hum")
    with pytest.raises(ParameterError, match="cannot stream"):
        speaking.speak(hum, [text], ["hum"], streamed=True)


@pytest.mark.test_all
@needs_dnsmos
@pytest.mark.model
@pytest.mark.parametrize("streamed", [False, True])
def test_int8_speaks_as_well_as_the_baseline(
    engine: Engine, voice_encoder: VoiceEncoder, streamed: bool
) -> None:
    texts = [
        FixtureText("a", "short", "The kettle is on."),
        FixtureText("b", "short", "Nobody is on the pier."),
    ]
    judged = perceptual.engine_of("int8", "own")
    found = perceptual.compare(engine, judged, texts, ["af_heart"], streamed=streamed)
    table = perceptual.measure(found, voice_encoder, (PESQ, LSD, SPEAKER, F0))
    assert (table.forced_length_difference_s == 0).all()
    assert table.pesq_candidate.min() > 4.3
    assert table.speaker_candidate.min() > 0.95
    assert table.f0_change_cents.max() < 51
    assert not np.array_equal(found[0].forced.pair.reference, found[0].forced.pair.candidate)


@pytest.mark.parametrize("voice", ["af_heart", "am_michael", "bf_emma", "bm_george"])
def test_the_wrong_voice_is_of_the_same_english_and_of_the_other_pitch(voice: str) -> None:
    wrong = perceptual.WRONG_VOICES[voice[:2]]
    assert (wrong[0], wrong != voice) == (voice[0], True)
    assert wrong[1] != voice[1]


def test_voices_of_other_languages_are_refused_before_anything_is_spoken(hum: Engine) -> None:
    with pytest.raises(ParameterError, match="zf_xiaobei is no English voice"):
        perceptual.compare(hum, hum, [], ["af_heart", "zf_xiaobei"])
