"""The base speaks without any extra, and what an extra installs is missed with a sentence that names it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from kokoro_lab.__main__ import main
from kokoro_lab.errors import MissingExtra
from kokoro_lab.extras import MISAKI, imported, require
from tests.documentation import ROOT
from tests.test_repository import project

PACKAGE = ROOT / "kokoro_lab"
MODULES = sorted(PACKAGE.rglob("*.py"))
HOME = packages_distributions()
CONDITIONAL = frozenset({"misaki"})
"""In the base, but not on each Python: it must not be imported with a module."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def installs(name: str) -> frozenset[str]:
    """A package and all that it needs, as they are installed here."""
    found: set[str] = set()
    waiting = [canonical(name)]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        try:
            needed = map(Requirement, requires(name) or ())
        except PackageNotFoundError:
            continue
        waiting += [canonical(r.name) for r in needed if not r.marker or r.marker.evaluate({"extra": ""})]
    return frozenset(found)


@cache
def group(extra: str | None) -> frozenset[str]:
    """Every package that an extra installs, or the base."""
    about = project(ROOT)
    lines = about["dependencies"] if extra is None else about["optional-dependencies"][extra]
    found: set[str] = set()
    for requirement in map(Requirement, lines):
        if requirement.name == "kokoro-lab":
            found |= set().union(*map(group, requirement.extras))
        else:
            found |= installs(requirement.name)
    return frozenset(found)


def is_third_party(module: str) -> bool:
    return module not in sys.stdlib_module_names and module != "kokoro_lab"


def comes_with(module: str, packages: frozenset[str]) -> bool:
    return not packages.isdisjoint(canonical(name) for name in HOME.get(module.partition(".")[0], ()))


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Modules of others, and their lines; not what only a checker of types reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            yield from ((name.name.partition(".")[0], node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0], node.lineno
        yield from imports(node)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def test_each_module_imports_what_its_part_of_the_package_installs() -> None:
    wrong = []
    for path in MODULES:
        inside = path.relative_to(PACKAGE)
        packages = group(None) | (group("lab") if inside.parts[0] == "lab" else frozenset())
        wrong += [
            f"{inside}:{line} imports {module}"
            for module, line in imports(parsed(path))
            if is_third_party(module) and not comes_with(module, packages)
        ]
    assert wrong == []


def test_what_is_not_there_on_each_python_is_imported_where_it_is_needed() -> None:
    conditional = [r for r in map(Requirement, project(ROOT)["dependencies"]) if r.marker is not None]
    assert {canonical(r.name) for r in conditional} == CONDITIONAL
    assert MISAKI.endswith(f" misaki{conditional[0].specifier}")
    for path in MODULES:
        module = ast.Module([node for node in parsed(path).body if not isinstance(node, ast.FunctionDef)], [])
        for node in module.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert CONDITIONAL.isdisjoint(name for name, _ in imports(ast.Module([node], []))), path


def test_what_comes_through_the_helper_is_of_the_extra_that_it_names() -> None:
    named = 0
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            literals = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            if node.func.id == "imported":
                extra, modules = node.keywords[0].value.value, literals  # type: ignore[attr-defined]
            elif node.func.id == "require" and literals:
                extra, *modules = literals
            else:
                continue
            for module in modules:
                named += 1
                here = module.partition(".")[0] in HOME  # an extra that is not installed is not known here
                assert comes_with(module, group(extra)) or not here, (path, module, extra)
    assert named > 20


def test_the_extras_are_what_the_documentation_says() -> None:
    extras = project(ROOT)["optional-dependencies"]
    (everything,) = extras["all"]
    assert Requirement(everything).extras == extras.keys() - {"all", "dev", "research"}
    assert group("lab") & group(None) < group("lab")
    for lean in ("scipy", "babel", "pandas", "sympy", "matplotlib", "numba", "jupyterlab"):
        assert lean not in group(None)


def test_what_is_missing_is_said_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    for ask in (lambda: imported("sounddevice", extra="play"), lambda: require("play", "sounddevice")):
        with pytest.raises(
            MissingExtra, match=r"sounddevice is not installed.*pip install 'kokoro-lab\[play\]'"
        ):
            ask()


@pytest.mark.parametrize(
    "command",
    ["bench", "bench soak", "bench text", "bench profile", "export -o x", "golden", "run 00_start", "tune"],
)
@pytest.mark.usefixtures("without_lab")
def test_each_command_of_the_lab_names_the_extra(command: str) -> None:
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 2, done.output
    assert "pip install 'kokoro-lab[lab]'" in done.output
