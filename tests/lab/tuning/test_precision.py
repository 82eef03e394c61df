"""A variant with layers in float that ship on integers: which of its graphs are made anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.graphs.recipes import exclusions
from kokoro_lab.lab.tuning.comparison import segments_of
from kokoro_lab.lab.tuning.precision import VariantMaker

pytestmark = [pytest.mark.model, pytest.mark.test_all]
LAYER = "/decoder/decoder/generator/resblocks.3/convs1.0/Conv"


def test_graphs_that_are_not_made_anew_are_those_that_ship() -> None:
    maker = VariantMaker(replace(EngineConfig.from_settings(), variant="int8"))
    kept = [*exclusions()["int8"], LAYER]
    (ids, style), *_ = segments_of(FrontEnd(), "Hello there.", "af_heart")
    spoken = {}
    for name, decoder in {
        "ships": maker.made(only=["vocoder"]),
        "vocoder": maker.made(keep=kept, only=["vocoder"]),
        "all": maker.made(keep=kept),
    }.items():
        contours = decoder.prosody.contours(ids, style, 1.0)
        spoken[name] = decoder.vocoder.whole(decoder.prosody.behind(contours, style))
    np.testing.assert_array_equal(spoken["vocoder"], spoken["all"])
    assert np.abs(spoken["ships"] - spoken["all"]).max() > 0
