"""The gate of seams: what it is given, what it lets pass, and what it must not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, AudioChunk, Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.clips import worst_first
from kokoro_lab.lab.fixtures import FixtureText, load_texts
from kokoro_lab.lab.gates import seams, streamed
from kokoro_lab.lab.gates.streamed import SEGMENT, WINDOW, Decodes, Seam, StreamedClip
from kokoro_lab.speech.chunker import Chunker
from kokoro_lab.speech.engine import Engine


def chunks_of(samples: Samples) -> tuple[AudioChunk, ...]:
    framer = Chunker()
    return (*framer.push(samples), *framer.flush())


@pytest.fixture(scope="module")
def clip() -> StreamedClip:
    """Recorded speech as if it had been streamed: two windows that meet without a seam."""
    path = Path(__file__).parents[2] / "metrics/speech.flac"
    samples = np.asarray(soundfile.read(path, dtype="float32")[0][: 4 * SAMPLE_RATE_HZ])
    middle = len(samples) // 2
    decodes = Decodes(samples, samples, (middle,))
    return StreamedClip("speech", "af_heart", chunks_of(samples), (Seam(WINDOW, middle),), samples, decodes)


def failed(clip: StreamedClip) -> set[str]:
    return {check.name for check in seams.judge(seams.measure([clip])) if not check.passed}


def test_what_is_whole_passes(clip: StreamedClip) -> None:
    assert failed(clip) == set()
    assert all(check.passed for check in seams.judge_windows(seams.measure([clip])))


def test_what_was_not_compared_with_undivided_speech_is_remarked(clip: StreamedClip) -> None:
    assert seams.remarks(seams.measure([clip])) == []
    undivided = replace(clip, decodes=clip.decodes._replace(borders=()))
    table = seams.measure([undivided])
    assert "seam_rank_change_mean" not in {check.name for check in seams.judge(table)}
    assert seams.remarks(table) == ["no border of windows was compared with the same place decoded at once"]


def test_every_fault_put_in_on_purpose_is_caught(clip: StreamedClip) -> None:
    found = seams.controls([clip], seams.detections([clip])) + seams.window_controls([clip])
    assert [control.name for control in found if not control.caught] == []
    assert len(found) == len(seams.FAULTS) + len(seams.SEEN_ALONE) + len(seams.CHUNK_FAULTS) + 1


def test_the_clip_with_the_largest_share_of_a_limit_is_the_worst_and_a_wrong_sample_is_worse(
    clip: StreamedClip,
) -> None:
    spoken = [replace(clip, text=name) for name in ("good", "bent", "wrong")]
    table = seams.measure(spoken)
    table.loc[1, "click_score_ratio"] = 0.9 * seams.CLICK_SCORE_HIGH
    table.loc[2, "differing_samples_count"] = 1
    ranked = worst_first(seams.judged_clips(spoken, table))
    assert [each.name for each in ranked] == ["wrong, af_heart", "bent, af_heart", "good, af_heart"]
    assert ranked[1].badness == pytest.approx(0.9)
    assert [each.notes["faults"] for each in ranked] == ["differing samples", "none", "none"]
    assert ranked[1].reference is not None
    assert ranked[1].reference().samples is clip.file


def test_one_bit_of_one_sample_is_a_difference(clip: StreamedClip) -> None:
    other = clip.file.copy()
    other[1_000] = np.nextafter(other[1_000], np.float32(2))
    assert failed(replace(clip, file=other)) == {"differing_samples_count"}
    assert failed(replace(clip, file=clip.file[:-1])) == {"differing_samples_count"}


def test_a_border_on_an_onset_is_no_fault_if_the_undivided_speech_has_it_too(clip: StreamedClip) -> None:
    at = clip.places(WINDOW)[0]
    bent = clip.samples.copy()
    bent[at] += 0.3
    on_border = replace(clip, chunks=chunks_of(bent), seams=(Seam(WINDOW, at, at),))

    def excess(undivided: Samples) -> float:
        spoken = replace(on_border, decodes=clip.decodes._replace(undivided=undivided))
        return float(seams.measure([spoken]).seam_excess_ratio[0])

    assert excess(clip.samples) > seams.SEAM_EXCESS_HIGH
    assert excess(bent) < seams.SEAM_EXCESS_HIGH
    # An onset of its own does not excuse a click that comes on top
    softer = clip.samples.copy()
    softer[at] += 0.01
    assert seams.SEAM_EXCESS_HIGH < excess(softer) < excess(clip.samples) + 1e-9
    # Nor does speech that is bent elsewhere
    assert excess(np.roll(bent, SAMPLE_RATE_HZ // 10)) > seams.SEAM_EXCESS_HIGH


def test_seams_of_segments_are_held_against_their_own_clip_alone(clip: StreamedClip) -> None:
    at = clip.places(WINDOW)[0]
    bent = clip.samples.copy()
    bent[at] += 0.3
    spoken = replace(clip, chunks=chunks_of(bent), seams=(Seam(SEGMENT, at),))
    spoken = replace(spoken, decodes=clip.decodes._replace(undivided=bent))
    assert seams.measure([spoken]).seam_excess_ratio[0] > seams.SEAM_EXCESS_HIGH


def test_a_segment_that_comes_back_is_a_fault_of_its_chunk(clip: StreamedClip) -> None:
    first, second, *rest = clip.chunks
    again = (replace(first, segment_id=1), second, *rest)
    assert seams.chunk_faults_count(clip.chunks) == 0
    assert seams.chunk_faults_count(again) == 1


def test_a_clip_that_was_not_put_together_shows_nothing(clip: StreamedClip) -> None:
    assert "seams_count" in failed(replace(clip, seams=()))


def test_a_stream_is_its_file_and_has_its_seams_where_segments_meet(hum: Engine) -> None:
    text = FixtureText("two", "", "Ah, one sentence that hums for long. And then another one that hums too.")
    (spoken,) = streamed.speak(hum, [(text, "hum")])
    assert seams.differing_count(spoken.samples, spoken.file) == 0
    assert seams.chunk_faults_count(spoken.chunks) == 0
    end, start = spoken.places(SEGMENT)
    assert end < start
    assert not spoken.samples[end:start].any()
    assert spoken.samples[end - 1] != 0
    assert spoken.places(WINDOW) == []  # this model runs as a whole
    np.testing.assert_array_equal(spoken.decodes.windows, spoken.decodes.undivided)


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    texts = load_texts()
    drawn = streamed.draw(texts, ["a", "b"], 8, 1)
    assert drawn == streamed.draw(texts, ["a", "b"], 8, 1)
    assert drawn != streamed.draw(texts, ["a", "b"], 8, 2)
    assert len({text.id for text, _ in drawn}) == 8
    with pytest.raises(ParameterError, match="cannot be drawn"):
        streamed.draw(texts, ["a"], 0, 1)


@pytest.mark.model
def test_windows_of_the_model_meet(engine: Engine) -> None:
    text = FixtureText("one", "", "The harbour lights came on one by one.")
    (spoken,) = streamed.speak(engine, [(text, "af_heart")])
    assert len(spoken.places(WINDOW)) >= 2
    assert seams.differing_count(spoken.samples, spoken.file) == 0
    assert {seam.decoded_at for seam in spoken.seams} == set(spoken.decodes.borders)
    table = seams.measure([spoken])
    assert [str(check) for check in seams.judge_windows(table) if not check.passed] == []
    (control,) = seams.window_controls([spoken])
    assert control.caught
