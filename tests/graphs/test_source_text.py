"""A digest of source changes with what code does, and with nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from kokoro_lab.graphs import source_text
from kokoro_lab.graphs.source_text import source_digest

PASSES = '''
"""Rewrites."""
import numpy as np

from toy_lab import helpers
from toy_lab.helpers import TAPS as ALL_TAPS, Layer

LIMIT = 5


def clip(x):
    """Cut x."""
    return min(x, LIMIT)


def rewrite(model: Layer) -> Layer:
    """Rewrite a model."""
    if model is None:
        raise ValueError("no model")
    return helpers.twice(clip(model)) + ALL_TAPS


def unrelated(x):
    return x
'''
HELPERS = """
from toy_lab.deep.numbers import base

TAPS = 3


class Layer:
    pass


def twice(x):
    return base() + 2 * x  # a product
"""
NUMBERS = """
def base():
    return 10
"""


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """The digest of `rewrite` in a package with these files in place of those above; "" leaves one out."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(source_text, "PACKAGE", "toy_lab")

    def forget() -> None:
        for name in [n for n in sys.modules if n.partition(".")[0] == "toy_lab"]:
            del sys.modules[name]
        for cached in (source_text.module_of, source_text.module_path, source_text.module_is_there):
            cached.cache_clear()
        invalidate_caches()

    def of(root: str = "passes", **changed: str) -> str:
        files = {
            "passes": PASSES,
            "helpers": HELPERS,
            "deep__numbers": NUMBERS,
            "deep____init__": "",
            **changed,
        }
        for old in tmp_path.rglob("*.py"):
            old.unlink()
        (tmp_path / "toy_lab").mkdir(exist_ok=True)
        (tmp_path / "toy_lab" / "__init__.py").touch()
        for name, text in files.items():
            path = tmp_path / "toy_lab" / f"{name.replace('__', '/', 1)}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        forget()
        return source_digest([import_module(f"toy_lab.{root}").rewrite])[0]

    yield of
    forget()


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(
            {"passes": PASSES.replace("ALL_TAPS\n\n\ndef un", "ALL_TAPS - 1\n\n\ndef un")}, id="the pass"
        ),
        pytest.param({"passes": PASSES.replace("min(", "max(")}, id="a helper beside it"),
        pytest.param({"passes": PASSES.replace("LIMIT = 5", "LIMIT = 6")}, id="a constant"),
        pytest.param({"helpers": HELPERS.replace("2 * x", "3 * x")}, id="a helper in another module"),
        pytest.param(
            {"helpers": HELPERS.replace("TAPS = 3", "TAPS = 4")}, id="a constant under another name"
        ),
        pytest.param({"deep__numbers": NUMBERS.replace("10", "11")}, id="a helper's helper"),
        pytest.param({"passes": PASSES.replace("is None", "is not None")}, id="a condition"),
        pytest.param({"passes": PASSES.replace("def clip(x)", "def clip(x, y=0)")}, id="a default"),
        pytest.param(
            {"helpers": HELPERS.replace("TAPS = 3", "TAPS = 3\nif True:\n    TAPS += 1")},
            id="a constant, raised",
        ),
    ],
)
def test_it_changes_with_whatever_changes_what_is_done(
    digest: Callable[..., str], changed: dict[str, str]
) -> None:
    before = digest()
    assert digest(**changed) != before


QUALIFIED = PASSES.replace("from toy_lab import helpers\n", "from toy_lab import tools\n").replace(
    "helpers.twice", "tools.twice"
)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"passes": PASSES.replace("x):", "x):  # x is a number")}, id="a comment"),
        pytest.param({"passes": PASSES.replace("Cut x.", "Cut what is given.")}, id="a docstring"),
        pytest.param({"passes": PASSES.replace("no model", "there is no model")}, id="what an error says"),
        pytest.param({"passes": PASSES.replace(": Layer) -> Layer", ")")}, id="annotations"),
        pytest.param({"passes": PASSES.replace("def unrelated(x)", "def other(y)")}, id="what is not called"),
        pytest.param(
            {"passes": PASSES.replace("import numpy as np\n", "import math\n")}, id="another import"
        ),
        pytest.param(
            {"root": "rewrites", "rewrites": PASSES, "passes": ""}, id="the module has another name"
        ),
        pytest.param(
            {
                "root": "graphs__passes".replace("__", "."),
                "graphs____init__": "",
                "graphs__passes": PASSES,
                "passes": "",
            },
            id="the module is in another package",
        ),
        pytest.param(
            {
                "passes": QUALIFIED.replace("toy_lab.helpers", "toy_lab.tools"),
                "tools": HELPERS,
                "helpers": "",
            },
            id="the helpers' module has another name",
        ),
        pytest.param(
            {
                "passes": PASSES.replace("import helpers\n", "import helpers, deep\n")
                .replace("from toy_lab.helpers import TAPS as ALL_TAPS, Layer", "Layer = None")
                .replace("ALL_TAPS", "helpers.TAPS")
            },
            id="a name is written with its module",
        ),
        pytest.param(
            {
                "passes": PASSES.replace(
                    "from toy_lab import helpers\n", "import toy_lab.helpers as helpers\n"
                )
            },
            id="a module is imported in another way",
        ),
        pytest.param(
            {
                "helpers": HELPERS.replace("from toy_lab.deep.numbers import base\n", NUMBERS),
            },
            id="two modules are merged",
        ),
    ],
)
def test_it_stays_where_only_the_place_or_the_words_change(
    digest: Callable[..., str], changed: dict[str, str]
) -> None:
    before = digest()
    assert digest(**changed) == before


def test_the_order_of_the_passes_counts() -> None:
    from kokoro_lab.graphs import passes

    both = [passes.fold_constants, passes.modulate]
    assert source_digest(both)[0] != source_digest(both[::-1])[0]


def test_a_pass_that_is_given_something_is_read_like_one_that_is_not() -> None:
    from kokoro_lab.graphs import passes

    assert source_digest([partial(passes.modulate, 1)]) == source_digest([passes.modulate])


def test_a_real_pass_is_read_with_its_helpers_in_other_modules() -> None:
    from kokoro_lab.graphs import alike_passes

    names = {name.rpartition(".")[2] for name in source_digest([alike_passes.norms])[1]}
    assert {"alike_passes", "native_passes", "passes", "rewriting"} <= names
