"""The key of a folder of graphs: all that they are made by, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from kokoro_lab.config import STAGED
from kokoro_lab.graphs import recipe_digest as subject
from kokoro_lab.graphs.artefacts import exclusions, recipes
from kokoro_lab.graphs.quantise import Calibration, Range
from kokoro_lab.graphs.recipe_digest import key_of, recipe_digest
from kokoro_lab.model import static_vocoder
from kokoro_lab.native import operators

SHIPPED = recipe_digest(recipes("int8", True), native_operators=True)


def test_each_variant_and_kind_of_operators_has_a_recipe_of_its_own() -> None:
    found = [recipe_digest(recipes(v, n), native_operators=n) for v in STAGED for n in (False, True)]
    found.append(recipe_digest(static_vocoder.recipes(), native_operators=False))
    assert len(set(found)) == len(found)


def test_an_edited_list_of_exclusions_is_another_recipe() -> None:
    kept = exclusions()["int8"]
    assert recipe_digest(recipes("int8", True, keep=kept), native_operators=True) == SHIPPED
    assert recipe_digest(recipes("int8", True, keep=()), native_operators=True) != SHIPPED
    assert recipe_digest(recipes("int8", True, keep=kept[1:]), native_operators=True) != SHIPPED


def test_another_range_is_another_recipe() -> None:
    ranges = Calibration.load()
    name, (low, high) = next(iter(ranges.items()))
    changed = Calibration({**ranges, name: Range(low, np.nextafter(high, np.float32(np.inf)))})
    given, other = (
        recipe_digest(recipes("int8", True, ranges=r), native_operators=True) for r in (ranges, changed)
    )
    assert len({SHIPPED, given, other}) == 3


def test_passes_in_another_order_are_another_recipe() -> None:
    made_by = recipes("fp32", True)
    stage, passes = made_by["trunk"]
    turned = {**made_by, "trunk": (stage, passes[::-1])}
    assert recipe_digest(turned, native_operators=True) != recipe_digest(made_by, native_operators=True)


def test_other_operators_are_another_recipe_where_they_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in operators.sources():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    stock = recipe_digest(recipes("int8", False), native_operators=False)
    monkeypatch.setattr(operators, "SOURCES", tmp_path)
    assert recipe_digest(recipes("int8", True), native_operators=True) == SHIPPED
    (tmp_path / "norm.h").rename(tmp_path / "norms.h")
    assert recipe_digest(recipes("int8", True), native_operators=True) == SHIPPED  # only its name is another
    (tmp_path / "norms.h").write_text("// nothing\n")
    assert recipe_digest(recipes("int8", True), native_operators=True) != SHIPPED
    assert recipe_digest(recipes("int8", False), native_operators=False) == stock


def test_another_version_of_a_library_is_another_key_of_the_same_recipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = key_of(SHIPPED)
    for library in ("numpy", "onnx", "onnxruntime"):
        monkeypatch.setattr(subject, "version", lambda name, other=library: "0" if name == other else "1")
        assert key_of(SHIPPED) != before


def test_an_edited_pass_helper_or_table_is_another_recipe_and_a_moved_one_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    room = tmp_path / "graphs"
    shutil.copytree(subject.ROOM, room, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(subject, "ROOM", room)
    shipped = recipe_digest(recipes("int8", True), native_operators=True)
    for name in ("tidy_passes.py", "rewriting.py", "exclusions.json", "ranges.npz"):
        before = (room / name).read_bytes()
        (room / name).write_bytes(before + b"\n")
        assert recipe_digest(recipes("int8", True), native_operators=True) != shipped
        (room / name).write_bytes(before)
    (room / "adain.py").rename(room / "normalisation.py")
    assert recipe_digest(recipes("int8", True), native_operators=True) == shipped


def test_a_pass_of_another_room_is_read_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made_by = {"vocoder": ("vocoder", (static_vocoder.with_metadata,))}
    before = recipe_digest(made_by, native_operators=False)
    edited = tmp_path / "static_vocoder.py"
    edited.write_text("# nothing\n")
    monkeypatch.setattr(static_vocoder, "__file__", str(edited))
    assert recipe_digest(made_by, native_operators=False) != before
