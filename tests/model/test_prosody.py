"""The stages before the vocoder: two of them at once, and the same samples as one after the other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.model.prosody import Prosody, ProsodyModel
from kokoro_lab.speech.engine import Engine
from kokoro_lab.weights.voices import load_voice

SEGMENTS = [[50 + (7 * n + k) % 60 for k in range(length)] for n, length in enumerate((3, 12, 40, 25))]


def spoken(model: ProsodyModel, ids: list[int]) -> Prosody:
    return model.predict(ids, load_voice("af_heart").style(len(ids)), 1.0)


def assert_same(found: Prosody, expected: Prosody) -> None:
    for name in ("durations", "f0_hz", "energy", "trunk", "excitation"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.mark.model
def test_what_is_made_beside_the_trunk_is_what_would_be_made_after_it(engine: Engine) -> None:
    assert isinstance(engine.decoder, StagedDecoder)
    model = engine.decoder.prosody
    for ids in SEGMENTS:
        assert_same(spoken(model, ids), spoken(model.in_turn(), ids))


@pytest.mark.model
def test_segments_that_are_prepared_at_once_are_not_mixed_up(engine: Engine) -> None:
    assert isinstance(engine.decoder, StagedDecoder)
    model = engine.decoder.prosody
    with ThreadPoolExecutor(len(SEGMENTS)) as listeners:
        at_once = list(listeners.map(lambda ids: spoken(model, ids), SEGMENTS * 2))
    for ids, found in zip(SEGMENTS * 2, at_once, strict=True):
        assert_same(found, spoken(model.in_turn(), ids))


@pytest.mark.model
def test_on_one_thread_nothing_is_done_beside_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a thread was started")

    alone = StagedDecoder(EngineConfig(variant="int8", threads=1))
    monkeypatch.setattr("threading.Thread.start", refused)
    assert spoken(alone.prosody, SEGMENTS[0]).frames
