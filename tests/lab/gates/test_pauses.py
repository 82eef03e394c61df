"""The pauses of real streams, as they are heard."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, WordTiming
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


def test_marks_of_other_languages_promise_as_much_as_those_of_english() -> None:
    sound, silence = np.full(7200, 0.5, np.float32), np.zeros(1920, np.float32)  # 300 ms, 80 ms
    words = [
        WordTiming(sign, 2 * k, 2 * k + 1, 0.38 * k, 0.38 * k + 0.3, "", 0) for k, sign in enumerate("红白蓝")
    ]
    samples = np.concatenate([sound, silence, sound, silence, sound])
    clip = Clip(samples, SAMPLE_RATE_HZ, report=cast(Any, None), timings=tuple(words))
    engine = cast(Engine, SimpleNamespace(stream=lambda *_, **__: SimpleNamespace(joined=lambda: clip)))
    for text in ("红，白。蓝", "红、白！蓝", "红；白：蓝", "红,白।蓝"):
        table = pauses.measure(engine, ["zf_xiaoxiao"], [text])
        assert table.heard_ms.round().tolist() == [80, 80]
        assert table.short.tolist() == [False, True], text  # 60 ms are promised, and 120
