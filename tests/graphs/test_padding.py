"""Pads behind the ids change nothing that is spoken, where a mask names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kokoro_lab.graphs import signatures
from kokoro_lab.graphs.making import published_stages
from kokoro_lab.graphs.padding_passes import MASK, TOKEN_LENGTHS, masked_ids, padded
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.lab.conversion.provider_partitions import speak
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine

OUTPUTS = list(signatures.STAGES["prosody"][1])


def test_ids_are_padded_to_the_next_length_and_the_mask_counts_them() -> None:
    found = padded([5, 6, 7])
    assert found["input_ids"].shape == (1, TOKEN_LENGTHS[0])
    assert found["input_ids"][0, :6].tolist() == [0, 5, 6, 7, 0, 0]
    assert found[MASK].sum() == 5
    assert padded(range(1, 511))["input_ids"].shape == (1, 512)


@pytest.fixture(scope="module")
def stage(engine: Engine) -> Model:
    return published_stages(engine.config)["prosody"]


def run(model: Model, engine: Engine, ids: dict[str, Any], style: np.ndarray) -> Sequence[np.ndarray]:
    # Without optimisations, which fuse other nodes in the one graph than in the other
    session = make_session(model.SerializeToString(), replace(engine.config, optimisation="none"))
    found: Sequence[np.ndarray] = session.run(
        OUTPUTS, ids | {"style": style, "speed": np.ones(1, np.float32)}
    )
    return found


@pytest.mark.test_all
@pytest.mark.model
def test_what_is_spoken_is_the_same_to_the_last_bit(engine: Engine, stage: Model) -> None:
    sentence = speak(engine, "The kettle is on.", "af_heart")
    spoken, style = sentence.token_ids, sentence.prosody.style
    ids = {"input_ids": np.array([[0, *spoken, 0]], np.int64)}
    plain = run(stage, engine, ids, style)
    with_pads = run(masked_ids(stage), engine, padded(spoken, (64,)), style)
    for a, b in zip(plain[:3], with_pads[:3], strict=True):
        assert np.abs(a - b).max() <= 1e-6 * np.abs(a).max()
    assert np.array_equal(plain[3].reshape(-1), with_pads[3].reshape(-1)[: len(spoken) + 2])
    # without the mask, the pads are spoken, and what is before them is spoken otherwise
    unmasked = run(stage, engine, {"input_ids": padded(spoken, (64,))["input_ids"]}, style)
    assert not np.array_equal(plain[3].reshape(-1), unmasked[3].reshape(-1)[: len(spoken) + 2])


@pytest.mark.model
def test_it_does_nothing_twice(stage: Model) -> None:
    once = masked_ids(stage)
    assert masked_ids(once) == once
