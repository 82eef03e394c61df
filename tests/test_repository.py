"""The files around the code say what the code says."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from kokoro_lab import __version__
from kokoro_lab.lab.notebooks import INDEX, find_notebook, notebook_names, question
from tests.documentation import PAGES, RECIPES, ROOT, all_pages, page, settings_table


def project(repository: Path) -> dict:  # type: ignore[type-arg]
    found: dict = tomllib.loads((repository / "pyproject.toml").read_text())["project"]  # type: ignore[type-arg]
    return found


def locked(repository: Path) -> dict[str, Version]:
    text = (repository / "requirements/lock.txt").read_text()
    return {name: Version(pin) for name, pin in re.findall(r"^([a-z0-9._-]+)==([^ \\]+)", text, re.MULTILINE)}


def test_the_lock_holds_what_the_project_asks_for(repository: Path) -> None:
    pins = locked(repository)
    wanted = list(project(repository)["dependencies"])
    wanted += chain.from_iterable(project(repository)["optional-dependencies"].values())
    for line in wanted:
        requirement = Requirement(line)
        if requirement.name == "kokoro-lab":  # an extra that holds others
            continue
        pin = pins[requirement.name.lower().replace("_", "-")]
        assert pin in requirement.specifier, line


def test_the_lock_has_hashes_and_names_no_address(repository: Path) -> None:
    text = (repository / "requirements/lock.txt").read_text()
    entries = re.split(r"\n(?=[a-z0-9])", text)[1:]
    assert len(entries) > 100
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


def test_nothing_here_needs_cuda(repository: Path) -> None:
    assert not [n for n in locked(repository) if n == "torch" or n.startswith("nvidia")]


def test_conda_users_get_the_lock(repository: Path) -> None:
    text = (repository / "environment.yml").read_text()
    assert "-r requirements/lock.txt" in text
    assert f"python {project(repository)['requires-python']}" in text


def test_the_installed_packages_are_the_locked_ones(repository: Path) -> None:
    from importlib.metadata import version

    pins = locked(repository)
    for line in project(repository)["dependencies"]:
        name = Requirement(line).name.lower().replace("_", "-")
        assert Version(version(name)) == pins[name], "run `make env`"


def test_the_documentation_has_the_environment_table() -> None:
    table, written = settings_table(), page("docs/configuration.md")
    assert [row for row in table.splitlines() if row not in written] == []
    assert table in written


def test_the_documentation_lists_every_notebook(repository: Path) -> None:
    listed = page("docs/notebooks.md")
    index = json.loads((repository / "notebooks" / f"{INDEX}.ipynb").read_text("utf-8"))["cells"]
    linked = "".join(line for cell in index for line in cell["source"])
    for name in notebook_names():
        asked = question(find_notebook(name))
        assert f"| `{name}` | {asked} |" in listed
        assert f"- [{name}]({name}.ipynb): {asked}" in linked
    assert f"`{INDEX}`" in listed


def test_every_make_target_in_the_documentation_exists(repository: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (repository / "Makefile").read_text(), re.MULTILINE))
    typed = re.findall(r"(?:^|`)make ([a-z-]+)", all_pages(), re.MULTILINE)
    assert {"demo", "test", "golden", "release-check", "test-macos"} <= set(typed)
    assert set(typed) <= targets


def test_the_readme_is_read_at_one_sitting(repository: Path) -> None:
    assert (repository / "README.md").stat().st_size <= 7 * 1024
    shown = re.findall(r"\]\((docs/(?:images|sounds)/[^)]+)\)", page("README.md"))
    assert {Path(name).suffix for name in shown} == {".svg", ".mp3"}
    assert all((repository / name).stat().st_size < 100_000 for name in shown)


def test_the_readme_leads_to_every_page() -> None:
    readme = page("README.md")
    for path in PAGES[1:]:
        assert f"({path.relative_to(ROOT).as_posix()})" in readme


@pytest.mark.parametrize("path", [*PAGES, RECIPES], ids=lambda path: path.name)
def test_links_of_the_documentation_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", without_code(path)):
        file, _, anchor = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        assert linked.is_file(), target
        assert not anchor or anchor in anchors(linked), target


def test_every_file_and_name_of_the_page_of_changes_is_there(repository: Path) -> None:
    lines = [line for line in page("docs/change.md").splitlines() if line.startswith("| ")]
    rows = [line.split("|")[1:-1] for line in lines[1:]]
    assert len(rows) > 15
    for cell in (cell for row in rows for cell in row):
        walk(cell, repository)


def test_every_file_name_test_and_notebook_of_a_recipe_is_there(repository: Path) -> None:
    recipes = RECIPES.read_text("utf-8").split("\n## ")[1:]
    assert len(recipes) >= 10
    for recipe in recipes:
        assert "**Shows:**" in recipe
        for step in re.split(r"\n\d\. ", recipe)[1:]:
            walk(step, repository)
        for tests in re.findall(r"`pytest ([^`]+)`", recipe):
            assert all((repository / path).exists() for path in tests.split()), tests
        for name in re.findall(r"kokoro-lab run (\d\w+)", recipe):
            assert name in notebook_names()


@pytest.mark.parametrize("missing", ["`text/nowhere.py`", "`text/detect.py` (`NOBODY`)"])
def test_a_file_or_name_that_is_gone_is_noticed(repository: Path, missing: str) -> None:
    with pytest.raises(AssertionError):
        walk(f"Add it to {missing}.", repository)


def walk(said: str, repository: Path) -> None:
    """Paths stand below the root, the package or the tests; a name in capitals is in one of the files."""
    quoted = [token for token in re.findall(r"`([^`]+)`", said) if not re.search(r"[ <*]|NN_", token)]
    files = []
    for token in quoted:
        if re.search(r"/|\.(py|tsv|json|md|toml)$", token):
            below = [repository / root / token for root in ("", "kokoro_lab", "tests")]
            below += [file.parent / token for file in files]
            found = next((file for file in below if file.exists()), None)
            assert found is not None, token
            files.append(found)
    sources = "\n".join(file.read_text("utf-8") for file in files if file.is_file())
    for name in (token for token in quoted if re.fullmatch(r"_?[A-Z]\w*(\.\w+)?", token)):
        assert name.rpartition(".")[2] in sources, (name, said)


def without_code(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """What GitHub calls the headings of a page: in small letters, without marks, a hyphen for each space."""
    headings = re.findall(r"^#+ (.+)$", without_code(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "notebook", sorted(p.name for p in Path(__file__).parents[1].glob("notebooks/*.ipynb"))
)
def test_a_notebook_is_thin_and_stripped(repository: Path, notebook: str) -> None:
    # As git holds it: in the folder it has outputs, once it was run in JupyterLab
    held = subprocess.run(
        ["git", "show", f":notebooks/{notebook}"], cwd=repository, capture_output=True, text=True, check=True
    )
    cells = json.loads(held.stdout)["cells"]
    code = [c for c in cells if c["cell_type"] == "code"]
    assert cells[0]["cell_type"] == "markdown"
    if notebook != f"{INDEX}.ipynb":  # which asks nothing
        assert "**Passes if**" in "".join(cells[0]["source"])
        assert sum("parameters" in c["metadata"].get("tags", []) for c in code) == 1
    for cell in code:
        source = "".join(cell["source"])
        assert not cell["outputs"]
        assert cell["execution_count"] is None
        assert len(source.splitlines()) <= 12
        assert not re.search(r"^(def|class|async def) ", source, re.MULTILINE)


def test_git_holds_no_large_file(repository: Path) -> None:
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=True
    )
    sizes = [
        (repository / n).stat().st_size for n in names.stdout.split("\0") if n and (repository / n).exists()
    ]
    assert max(sizes) < 2 * 2**20
    assert sum(sizes) < 30 * 2**20


def test_the_changelog_knows_the_version(repository: Path) -> None:
    changelog = (repository / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog or f"## [{__version__}]" in changelog


def test_the_root_of_the_package_can_be_read_at_a_glance() -> None:
    entries = [entry for entry in (ROOT / "kokoro_lab").iterdir() if entry.name != "__pycache__"]
    assert len(entries) <= 30, "put it into a folder, or two files into one"
