"""The pauses of real streams, as they are heard."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.lab.gates import pauses
from kokoro_lab.lab.results import failed
from kokoro_lab.speech.engine import Engine, load_engine

VOICES = ("af_heart", "bf_emma")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return load_engine("int8", tuned=False)


@pytest.mark.model
def test_pauses_are_as_long_as_promised_and_the_models_own_are_not(engine: Engine) -> None:
    table = pauses.measure(engine, VOICES)
    assert len(table) > 20
    assert failed(pauses.judge(table)) == []
    assert set(pauses.summary(table).place) == {"within", "between"}
    assert [control.caught for control in pauses.controls(engine, VOICES[:1])] == [True]


@pytest.mark.model
def test_the_word_behind_a_comma_begins_where_it_is_heard(engine: Engine) -> None:
    text = "Red, white, and blue, and then black, are the colours."
    clip = engine.stream(text, voice="af_heart", cached=False).joined()
    for word, following in zip(clip.timings, clip.timings[1:], strict=False):
        if "," not in text[word.end : following.start]:
            continue
        first, stop = (
            round((s + 0.1 * k) * SAMPLE_RATE_HZ) for s, k in ((word.end_s, 0), (following.start_s, 1))
        )
        loud = np.flatnonzero(np.abs(clip.samples[first:stop]) >= pauses.SILENT)
        heard = loud[np.diff(loud, prepend=-1).argmax()]  # behind the longest silence
        assert word.end_s + heard / SAMPLE_RATE_HZ == pytest.approx(following.start_s, abs=0.075), word.text
