"""The highest rates of a core are measured with the instruction sets that this processor has."""

from __future__ import annotations

from pathlib import Path

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.research import roofline
from kokoro_lab.native.operators import found_compilers


@pytest.mark.skipif(not found_compilers(), reason="no compiler")
def test_a_core_is_measured_with_what_it_has(tmp_path: Path) -> None:
    (best,) = roofline.chosen_sets("best")
    found = roofline.limits(best, tmp_path)
    assert found.float_gops > 1
    assert found.read_gb_per_s[64] > found.read_gb_per_s[131072] / 2 > 0.1


def test_a_set_that_is_not_here_is_refused() -> None:
    assert roofline.chosen_sets("") == list(roofline.sets_here())
    with pytest.raises(ParameterError, match="mmx"):
        roofline.chosen_sets("mmx")
