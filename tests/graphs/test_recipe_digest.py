"""The key of a folder of graphs: all that they are made by, and nothing else."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kokoro_lab.config import STAGED
from kokoro_lab.graphs import recipe_digest as subject
from kokoro_lab.graphs.artefacts import recipe_of
from kokoro_lab.graphs.recipe_digest import key_of, recipe_digest
from kokoro_lab.model import static_vocoder
from kokoro_lab.model.static_vocoder import WINDOWS, static_recipe
from kokoro_lab.native import operators


def shipped() -> str:
    return recipe_of("int8", native_operators=True)


def test_each_variant_and_kind_of_operators_has_a_recipe_of_its_own() -> None:
    found = [recipe_of(variant, native_operators=native) for variant in STAGED for native in (False, True)]
    found += [static_recipe(), *(window.cache_key for window in WINDOWS)]
    assert len(set(found)) == len(found)


def test_other_operators_are_another_recipe_where_they_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in operators.sources():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    native, stock = shipped(), recipe_of("int8", native_operators=False)
    monkeypatch.setattr(operators, "SOURCES", tmp_path)
    assert shipped() == native
    (tmp_path / "norm.h").rename(tmp_path / "norms.h")
    assert shipped() == native  # only its name is another
    (tmp_path / "norms.h").write_text("// nothing\n")
    assert shipped() != native
    assert recipe_of("int8", native_operators=False) == stock


def test_another_version_of_a_library_is_another_key_of_the_same_recipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = key_of(shipped())
    for library in ("numpy", "onnx", "onnxruntime"):
        monkeypatch.setattr(subject, "version", lambda name, other=library: "0" if name == other else "1")
        assert key_of(shipped()) != before


def test_an_edited_pass_helper_or_table_is_another_recipe_and_a_moved_one_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    room = tmp_path / "graphs"
    shutil.copytree(subject.ROOM, room, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(subject, "ROOM", room)
    before = shipped()
    for name in ("recipes.py", "tidy_passes.py", "rewriting.py", "exclusions.json", "ranges.npz"):
        written = (room / name).read_bytes()
        (room / name).write_bytes(written + b"\n")
        assert shipped() != before
        (room / name).write_bytes(written)
    (room / "adain.py").rename(room / "normalisation.py")
    assert shipped() == before


def test_windows_of_another_size_are_another_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    before = static_recipe()
    narrower = tuple(replace(window, inner_context=window.inner_context - 1) for window in WINDOWS)
    monkeypatch.setattr(static_vocoder, "WINDOWS", narrower)
    assert static_recipe() != before


def test_a_file_of_another_room_is_read_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = static_recipe()
    assert before != recipe_digest("static", native_operators=False)
    edited = tmp_path / "static_vocoder.py"
    edited.write_text("# nothing\n")
    monkeypatch.setattr(static_vocoder, "__file__", str(edited))
    assert static_recipe() != before
