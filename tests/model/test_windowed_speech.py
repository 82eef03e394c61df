"""The first window is spoken before the trunk of its segment, by statistics that are told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import passes, signatures, trunk_passes
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.graphs.making import published_stages
from kokoro_lab.lab.tuning.reporter import OwnStatistics, TrunkStatistics
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model import prosody
from kokoro_lab.model.decoder import SegmentRequest, StagedDecoder
from kokoro_lab.model.prosody import Contours, Prosody, ProsodyModel
from kokoro_lab.model.windowed_speech import FADE_FRAMES, fading
from kokoro_lab.model.windows import CONTEXT_FRAMES, FIRST_WINDOW_FRAMES, LEAST_FRAMES, window_plan
from kokoro_lab.native.operators import native_operators
from kokoro_lab.scheduling.deadlines import Claim, Unit
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine

Values = npt.NDArray[np.float32]
SENTENCE = "Nobody had ever seen the garden in such a state,"
"""Its first segment is long enough to be begun."""


class Told:
    """A predictor that says what it was told."""

    def __init__(self, mean: Values, variance: Values) -> None:
        self._found = mean, variance

    def told(self, inputs: Values) -> tuple[Values, Values]:
        return self._found

    def predict(self, prosody: Prosody) -> tuple[Values, Values]:
        return self._found

    def of_variant(self, variant: str, before: int = 0) -> Told:
        return self

    def doubts(self, parts: Sequence[str]) -> None:
        return None


@pytest.fixture(scope="module")
def true_of_the_trunk() -> TrunkStatistics:
    return TrunkStatistics(EngineConfig(variant="fp32"))


def heard(engine: Engine, voice: str = "af_heart", text: str = SENTENCE) -> tuple[Contours, Values]:
    """Contours of a sentence, and its style."""
    segment = next(engine.front_end.segments(text, "en-us", lambda _: None))
    style = engine.voice(voice).style(len(segment.token_ids))
    return engine.decoder.prosody.contours(segment.token_ids, style, 1.0), style  # type: ignore[attr-defined]  # the decoder of stages, not the protocol's


def first_frames(whole: Prosody, part: Prosody, frames: int) -> tuple[float, float]:
    """How far trunk and excitation of `frames` agree, in dB."""
    samples = frames * signatures.TRUNK_FRAME_SAMPLES
    return (
        signal_to_difference_db(whole.trunk[:, :, :frames].ravel(), part.trunk[:, :, :frames].ravel()),
        signal_to_difference_db(whole.excitation[0, :samples], part.excitation[0, :samples]),
    )


@pytest.mark.model
@pytest.mark.parametrize("native", ["auto", "off"])
def test_of_true_statistics_come_the_first_frames_of_the_whole_trunk(
    engine: Engine, true_of_the_trunk: TrunkStatistics, native: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = EngineConfig(variant="fp32", native=native)
    operators = native_operators(config)
    model = ProsodyModel(stages_folder(config, operators), config, operators)
    contours, style = heard(engine)
    whole = model.behind(contours, style)
    told = true_of_the_trunk(contours, style)
    for frames in (1, 20, 45):
        part = model.beginning(contours, style, frames, *told)
        assert frames < part.frames < whole.frames / 2
        assert min(first_frames(whole, part, frames)) > 100
    # As far as it sees, and no further
    monkeypatch.setattr(prosody, "TRUNK_REACH_FRAMES", prosody.TRUNK_REACH_FRAMES - 1)
    assert min(first_frames(whole, model.beginning(contours, style, 20, *told), 20)) < 80


@pytest.mark.model
def test_a_trunk_that_is_told_nothing_has_the_bits_of_the_published_one(engine: Engine) -> None:
    published = published_stages(EngineConfig(variant="fp32"))["trunk"]
    folded = passes.fold_constants(published)
    rewritten = trunk_passes.told_statistics(folded)
    assert trunk_passes.told_statistics(rewritten) == rewritten
    contours, style = heard(engine)
    feed = {
        signatures.ALIGNED: contours.aligned,
        signatures.F0: contours.f0_hz,
        signatures.ENERGY: contours.energy,
        signatures.DECODER_STYLE: style[:, :128],
    }
    beside = signatures.whole_trunk(contours.aligned.shape[2])
    (theirs,), (ours,) = (
        make_session(model.SerializeToString(), EngineConfig(variant="fp32")).run([signatures.TRUNK], given)
        for model, given in ((folded, feed), (rewritten, feed | beside))
    )
    np.testing.assert_array_equal(theirs, ours)


def decoder_told(engine: Engine, contours: Contours, style: Values, true: TrunkStatistics) -> StagedDecoder:
    """A decoder that is told the true statistics of a sentence."""
    config = EngineConfig(variant="fp32")
    whole = ProsodyModel(
        stages_folder(config, native_operators(config)), config, native_operators(config)
    ).behind(contours, style)
    mean, variance = OwnStatistics(config)(whole)
    trunk_mean, trunk_variance = true(contours, style)
    early = Told(np.append(trunk_mean, mean), np.append(trunk_variance, variance))
    return StagedDecoder(config, Told(mean, variance), early)  # type: ignore[arg-type]  # they are asked for no more


@pytest.mark.model
def test_with_true_statistics_a_stream_is_the_whole(
    engine: Engine, true_of_the_trunk: TrunkStatistics
) -> None:
    contours, style = heard(engine)
    decoder = decoder_told(engine, contours, style, true_of_the_trunk)
    whole = decoder.vocoder.whole(decoder.prosody.behind(contours, style))
    first, last = prosody.audible_frames(contours.energy.reshape(-1))
    inside = slice(300 * (first + 8), 300 * (last - 8))
    for samples in (
        np.concatenate(list(decoder.windows(contours, style))),
        decoder.undivided(contours, style),
    ):
        assert len(samples) == len(whole)
        assert signal_to_difference_db(whole[inside], samples[inside]) > 95


@pytest.mark.model
def test_the_first_sound_does_not_wait_for_the_trunk(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = StagedDecoder(EngineConfig(variant="fp32"))
    contours, style = heard(engine)
    assert contours.f0_hz.size >= LEAST_FRAMES
    monkeypatch.setattr(decoder.prosody, "behind", lambda *_: pytest.fail("all of the trunk is computed"))
    first = next(decoder.windows(contours, style))
    silence = prosody.audible_frames(contours.energy.reshape(-1))[0] * signatures.TRUNK_FRAME_SAMPLES
    assert silence > 0
    assert not first[:silence].any()
    assert np.abs(first[silence:]).max() > 0.01


@pytest.mark.model
@pytest.mark.parametrize(
    "text", [SENTENCE, "Who is there?", "She sells them.", "The kettle is on the stove."]
)
def test_the_first_chunk_takes_one_small_window(engine: Engine, text: str, decoded_frames: list[int]) -> None:
    chunks = engine.stream(text, cached=False)
    next(chunks)
    assert len(decoded_frames) == 1
    assert decoded_frames[0] < FIRST_WINDOW_FRAMES
    next(chunks)
    assert len(decoded_frames) == 2
    chunks.close()


@pytest.mark.model
def test_the_cores_are_asked_for_only_to_compute(
    engine: Engine, decoded_frames: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence around a segment, and a segment's end, take no computing: a stream that waited for the cores
    then would wait for the windows of others."""
    asked: list[Claim] = []
    ask = engine.parts.cores.ask

    def counted(claim: Claim, *, whole: bool = False) -> Unit:
        asked.append(claim)
        return ask(claim, whole=whole)

    monkeypatch.setattr(engine.parts.cores, "ask", counted)
    segments = {chunk.segment_id for chunk in engine.stream(f"{SENTENCE} {SENTENCE}", cached=False)}
    assert len(segments) > 1
    assert len(asked) == len(decoded_frames) + len(segments)


@pytest.mark.model
@pytest.mark.parametrize("variant", ["fp32", "int8"])
def test_a_stream_can_be_gone_on_with_from_any_window(engine: Engine, variant: str) -> None:
    decoder = StagedDecoder(EngineConfig(variant=variant))
    segment = next(engine.front_end.segments(SENTENCE, "en-us", lambda _: None))
    style = engine.voice("af_heart").style(len(segment.token_ids))
    decoded = decoder.decode(SegmentRequest(segment.token_ids, style, predicted=True))
    assert decoded.later is not None
    blocks = list(decoded.blocks)
    starts = np.cumsum([0, *(len(block) for block in blocks[:-1])])
    whole = np.concatenate(blocks)
    for at in starts[:4]:
        start, rest = decoded.later(int(at))
        assert start == at
        np.testing.assert_array_equal(np.concatenate(list(rest)), whole[at:])


@pytest.mark.model
def test_a_beginning_by_the_statistics_of_another_voice_is_noticed(
    engine: Engine, true_of_the_trunk: TrunkStatistics
) -> None:
    contours, style = heard(engine)
    told = true_of_the_trunk(*heard(engine, "am_michael"))
    model = engine.decoder.prosody  # type: ignore[attr-defined]  # the decoder of stages, not the protocol's
    part = model.beginning(contours, style, 20, *told)
    assert first_frames(model.behind(contours, style), part, 20)[0] < 15


@pytest.mark.parametrize("frames", [LEAST_FRAMES - 2, LEAST_FRAMES])
def test_a_short_segment_has_no_early_windows(frames: int) -> None:
    plan = window_plan(EngineConfig(), np.full((1, frames), 1.0, np.float32), urgent=True)
    if frames < LEAST_FRAMES:
        assert plan.early == 0
        return
    assert plan.audible[0] < plan.early_stop < plan.audible[1]
    assert plan.early_stop + FADE_FRAMES + CONTEXT_FRAMES < frames / 2


def test_what_fades_out_ends_and_what_fades_in_begins() -> None:
    out, blocks = np.ones(300, np.float32), [np.zeros(900, np.float32), np.ones(5, np.float32)]
    faded, rest = fading(out, iter(blocks))
    assert (np.diff(faded[:300]) < 0).all()
    assert 0.99 < faded[0] < 1
    assert 0 < faded[299] < 0.01
    assert not faded[300:].any()
    assert rest is blocks[1]
    assert not blocks[0].any(), "what was decoded is left as it was"
    np.testing.assert_array_equal(next(fading(out, iter([out]))), out)
