"""The key of a folder of graphs: all that they are made by, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import kokoro_lab
from kokoro_lab.config import STAGED
from kokoro_lab.graphs import recipe_digest as subject
from kokoro_lab.graphs.artefacts import exclusions, recipes
from kokoro_lab.graphs.quantise import Calibration, Range
from kokoro_lab.graphs.recipe_digest import key_of, recipe_digest, remembered_digest
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
    assert recipe_digest(recipes("int8", True, ranges=ranges), native_operators=True) == SHIPPED
    name, (low, high) = next(iter(ranges.items()))
    changed = Calibration({**ranges, name: Range(low, np.nextafter(high, np.float32(np.inf)))})
    assert recipe_digest(recipes("int8", True, ranges=changed), native_operators=True) != SHIPPED


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


def test_a_value_whose_content_cannot_be_digested_is_refused() -> None:
    made_by = {"vocoder": ("vocoder", (partial(subject.signatures.cut, object()),))}
    with pytest.raises(TypeError, match="a pass cannot be given a object"):
        recipe_digest(made_by, native_operators=False)


def test_a_digest_is_remembered_until_a_file_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def made_by() -> subject.Recipes:
        asked.append("recipes")
        return recipes("int8", True)

    made_by.__module__ = "kokoro_lab.graphs.artefacts"
    for _ in range(2):
        assert remembered_digest("int8-native", made_by, tmp_path, native_operators=True) == SHIPPED
    assert asked == ["recipes"]
    memo = tmp_path / subject.MEMO
    ((entry,),) = json.loads(memo.read_text()).values()
    read = set(entry["files"])
    assert {
        "graphs/quant_passes.py",
        "graphs/fast_fir.py",
        "graphs/exclusions.json",
        "graphs/ranges.npz",
    } <= read
    assert {"graphs/artefacts.py", "native/norm.cpp", "native/ort_abi.h"} <= read
    for changed in ("graphs/quant_passes.py", "graphs/exclusions.json", "native/norm.cpp"):
        memo.write_text(json.dumps({"int8-native": [{**entry, "files": {**entry["files"], changed: "0"}}]}))
        asked.clear()
        assert remembered_digest("int8-native", made_by, tmp_path, native_operators=True) == SHIPPED
        assert asked == ["recipes"]


@pytest.mark.parametrize("held", ["", "[]", '{"int8": {}}', '{"int8": [1, {"files": 3}]}', "\x00"])
def test_a_memo_that_is_damaged_is_as_good_as_none(held: str, tmp_path: Path) -> None:
    (tmp_path / subject.MEMO).write_text(held)
    made_by = partial(recipes, "int8", False)
    expected = recipe_digest(made_by(), native_operators=False)
    assert remembered_digest("int8", made_by, tmp_path, native_operators=False) == expected
    assert json.loads((tmp_path / subject.MEMO).read_text())["int8"][0]["recipe"] == expected


def test_the_package_with_files_moved_has_the_same_recipes_and_with_an_edited_helper_others(
    tmp_path: Path,
) -> None:
    """In a copy of the package, read by a process of its own."""
    package = tmp_path / "kokoro_lab"
    theirs = Path(kokoro_lab.__file__).parent
    shutil.copytree(theirs, package, ignore=shutil.ignore_patterns("__pycache__"))
    moved = {
        "graphs.tidy_passes": "rewrites.tidying",
        "graphs.fast_fir": "rewrites.fir",
        "scheduling.one_thread": "alone",
    }
    (package / "rewrites").mkdir()
    (package / "rewrites" / "__init__.py").touch()
    for old, new in moved.items():
        (package / f"{old.replace('.', '/')}.py").rename(package / f"{new.replace('.', '/')}.py")
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8").replace("    tidy_passes,\n", "")
        for old, new in moved.items():
            text = text.replace(f"kokoro_lab.{old} ", f"kokoro_lab.{new} ")
        text = text.replace("tidy_passes.", "tidying.")
        if "tidying." in text:
            text = text.replace("import onnx\n", "import onnx\nfrom kokoro_lab.rewrites import tidying\n", 1)
        path.write_text(text, "utf-8")
    code = (
        "import json\n"
        "from kokoro_lab.graphs.artefacts import recipes\n"
        "from kokoro_lab.graphs.recipe_digest import recipe_digest\n"
        "found = [recipe_digest(recipes(v, True), native_operators=True) for v in ('fp32', 'int8')]\n"
        "print(json.dumps(found))\n"
    )

    def found() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        digests: list[str] = json.loads(done.stdout)
        return digests

    shipped = [recipe_digest(recipes(v, True), native_operators=True) for v in ("fp32", "int8")]
    assert found() == shipped
    helper = package / "rewrites" / "tidying.py"
    text = helper.read_text()
    assert '"Identity"' in text
    helper.write_text(text.replace('"Identity"', '"Identities"'))
    fp32, int8 = found()
    assert (fp32 == shipped[0], int8 == shipped[1]) == (True, False)  # of fp32 no pass calls it
    helper.write_text(text + "\n\n# A comment\nUNUSED = 1\n")
    assert found() == shipped
