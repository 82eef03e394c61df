"""A candidate answers for itself alone, and within which distance it sounds as the defaults."""

from __future__ import annotations

import math
from functools import partial

import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.compare.engine_process import EngineFailed, EngineProcess
from kokoro_lab.lab.tuning.candidate import CandidateFigures, measured
from tests.toy_engine import make_engine

CONFIG = EngineConfig(threads=2)


def test_what_the_defaults_refuse_is_not_held_against_a_candidate() -> None:
    with (
        EngineProcess("defaults", CONFIG, "hum", make_engine) as beside,
        pytest.raises(EngineFailed, match="provider is lost"),
    ):
        # The defaults begin the second text
        measured(beside, partial(EngineProcess, "candidate", CONFIG, "hum", make_engine), ["Fine.", "refuse"])


@pytest.mark.parametrize(
    ("snr_db", "pesq", "excess_db"),
    [(100.0, math.nan, -60), (39.0, 4.5, 0), (39.0, 4.4, 1), (-100.0, math.nan, 140)],
)
def test_how_far_the_sound_is_off(snr_db: float, pesq: float, excess_db: float) -> None:
    assert CandidateFigures(1, 1, 1, 1, 1, 1, snr_db, pesq).excess_db == excess_db
