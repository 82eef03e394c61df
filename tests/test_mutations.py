"""The list of what breaks speech on purpose fits the code, and what no test notices is told."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest


def test_every_mutation_fits_the_code_as_it_is_now(mutations: ModuleType, repository: Path) -> None:
    for file, changes in groupby(sorted(mutations.MUTATIONS, key=attrgetter("file")), attrgetter("file")):
        source = (repository / file).read_text("utf-8")
        parsed = ast.dump(ast.parse(source)) if file.endswith(".py") else None
        for mutation in changes:
            mutated = mutation.of(source)  # raises unless the old text stands there once
            assert mutated != source
            if parsed is not None:
                assert ast.dump(ast.parse(mutated)) != parsed, mutation.name


def test_every_mutation_has_a_name_and_tests_that_exist(mutations: ModuleType, repository: Path) -> None:
    assert max(Counter(m.name for m in mutations.MUTATIONS).values()) == 1
    for mutation in mutations.MUTATIONS:
        assert mutation.tests
        for test in mutation.tests:
            file, name = test.split("::")
            function = name.partition("[")[0]
            assert f"def {function}(" in (repository / file).read_text("utf-8"), test


def test_what_no_test_notices_is_told_and_the_files_are_as_before(
    mutations: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout, copy = tmp_path / "checkout", tmp_path / "copy"
    checkout.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    (checkout / "louder.py").write_text("def louder(x):\n    return 2 * x  # why\n")
    (checkout / "test_louder.py").write_text(
        "from louder import louder\n\ndef test_louder():\n    assert louder(3) == 6\n"
    )
    mutations.copied(checkout, copy)
    tests = ("test_louder.py::test_louder",)
    noticed = mutations.Mutation("not louder", "louder.py", "2 * x", "x", tests)
    unnoticed = mutations.Mutation("another remark", "louder.py", "# why", "# how", tests)
    broken = mutations.Mutation("no Python", "louder.py", "def ", "fed ", tests)
    assert mutations.survivors([noticed, unnoticed, broken], copy) == [unnoticed, broken]
    assert (copy / "louder.py").read_text() == (checkout / "louder.py").read_text()
    told = capsys.readouterr().out.splitlines()
    assert told[0].split() == ["caught", "not", "louder", "test_louder"]
    assert told[1].startswith("SURVIVED  another remark")
    assert any(line.startswith("BROKEN") for line in told)
    with pytest.raises(RuntimeError, match="Without any mutation"):
        mutations.survivors([mutations.Mutation("", "louder.py", "2", "3", ("test_none.py",))], copy)


def test_a_mutation_whose_text_is_gone_or_stands_there_twice_is_refused(mutations: ModuleType) -> None:
    mutation = mutations.Mutation("m", "f.py", "a", "b", ())
    for source in ("ccc", "aca"):
        with pytest.raises(ValueError, match="times"):
            mutation.of(source)


def test_words_that_no_mutation_has_run_nothing(
    mutations: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(mutations, "survivors")
    assert mutations.main(["--help"]) == 1
    assert "WORD" in capsys.readouterr().out
