"""The face of the package: what `import kokoro_lab` promises is there."""

from __future__ import annotations

from pathlib import Path

import pytest

import kokoro_lab as kl
from kokoro_lab.datatypes import Utterance
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.speech.engine import Engine


@pytest.mark.parametrize("name", kl.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(kl, name).__name__ == name
    assert name in dir(kl)


def test_a_star_import_gives_them_all() -> None:
    found: dict[str, object] = {}
    exec("from kokoro_lab import *", found)
    assert set(kl.__all__) <= found.keys()
    assert found["EngineConfig"] is EngineConfig


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Engin'"):
        _ = kl.Engin


def test_every_option_of_an_utterance_is_named_where_streams_are_documented() -> None:
    told = Engine.stream.__doc__ or ""
    missing = [name for name in Utterance.__dataclass_fields__ if name != "text" and name not in told]
    assert missing == []


def test_no_module_of_the_package_takes_tools_of_tests() -> None:
    package = Path(kl.__file__).parent
    using = [path.name for path in package.rglob("*.py") if "unittest" in path.read_text("utf-8")]
    assert using == []
