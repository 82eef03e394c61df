"""What is released is whole, says its version, and can be left for the version before."""

from __future__ import annotations

import importlib.util
import re
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kokoro_lab.config import settings
from kokoro_lab.speech.engine import Engine, load_engine


@pytest.fixture(scope="module")
def release() -> ModuleType:
    path = Path(__file__).parents[1] / "scripts" / "check_release.py"
    spec = importlib.util.spec_from_file_location("check_release", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_release"] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(release: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    wheel, sdist = release.build(tmp_path_factory.mktemp("dist"))
    return wheel, sdist


# ---------------------------------------------------------------------------------- version, changelog

OPEN = "## [Unreleased]\n### Added\n- a thing\n"
RELEASED = "## [1.2.0] - 2026-01-31\n### Added\n- another\n"


def test_the_version_and_the_changelog_of_this_checkout_fit(release: ModuleType, repository: Path) -> None:
    from kokoro_lab import __version__

    assert release.version_faults(__version__, (repository / "CHANGELOG.md").read_text()) == []


@pytest.mark.parametrize(
    ("version", "changelog"),
    [
        ("0.1.0", OPEN),
        ("1.3.0", OPEN + RELEASED),
        ("1.3.0.dev1", OPEN + RELEASED),
        ("2.0.0", OPEN + RELEASED),
        ("1.2.0", "## [Unreleased]\n" + RELEASED),
        ("1.2.1", "## [Unreleased]\n### Fixed\n- a bug\n" + RELEASED),
        ("1.2.0", OPEN + RELEASED.replace("1.2.0", "1.2.0rc1")),
        ("1.2.0rc2", OPEN + RELEASED.replace("1.2.0", "1.2.0rc1")),
    ],
)
def test_a_version_that_fits_its_changelog_has_no_fault(
    release: ModuleType, version: str, changelog: str
) -> None:
    assert release.version_faults(version, changelog) == []


@pytest.mark.parametrize(
    ("version", "changelog", "said"),
    [
        ("1.2", OPEN, "no semantic version"),
        ("01.2.0", OPEN, "no semantic version"),
        ("1.2.0", OPEN + RELEASED, "raise the version"),
        ("1.2.1", OPEN + RELEASED, "makes it 1.3.0 at least"),
        ("1.2.0a3", OPEN + RELEASED.replace("1.2.0", "1.2.0rc1"), "older than 1.2.0rc1"),
        ("1.2.0.dev1", "## [Unreleased]\n### Fixed\n- a bug\n" + RELEASED, "older than 1.2.0"),
        ("1.3.0", "## [Unreleased]\n### Removed\n- a promise\n" + RELEASED, "makes it 2.0.0 at least"),
        ("1.3.0", "## [Unreleased]\n" + RELEASED, "has no section"),
        ("1.2.0", RELEASED, "first section"),
        ("1.3.0", OPEN + RELEASED.replace(" - 2026-01-31", ""), "has no date"),
        ("1.3.0", OPEN + "## [1.2.0] - 2026-01-31\n", "[1.2.0] has no line"),
        ("1.3.0", OPEN + RELEASED + RELEASED, "each once"),
        ("1.4.0", OPEN + RELEASED + RELEASED.replace("1.2.0", "1.3.0"), "newest to the oldest"),
        ("0.1.0", OPEN.replace("Added", "Improved"), "'Improved'"),
    ],
)
def test_a_version_that_does_not_fit_is_told(
    release: ModuleType, version: str, changelog: str, said: str
) -> None:
    assert any(said in fault for fault in release.version_faults(version, changelog))


# ---------------------------------------------------------------------------------------- wheel, sdist


def test_wheel_and_sdist_hold_every_file_of_the_package_and_no_other(
    release: ModuleType, built: tuple[Path, Path]
) -> None:
    wanted = release.tracked()
    kinds = {".py", ".json", ".npz", ".tsv", ".cpp", ".h", ".js", ".html", ".css", ".svg", ".typed"}
    assert kinds <= {Path(name).suffix for name in wanted}
    for archive in built:
        assert release.archive_faults(archive.name, release.files_in(archive), wanted) == []


@pytest.mark.parametrize("ending", [".json", ".npz", ".tsv", ".cpp", ".js"])
def test_a_file_that_was_left_out_or_changed_is_told(
    release: ModuleType, built: tuple[Path, Path], tmp_path: Path, ending: str
) -> None:
    less = tmp_path / "less.whl"
    with zipfile.ZipFile(built[0]) as whole, zipfile.ZipFile(less, "w") as copy:
        left_out, changed, *_ = [name for name in whole.namelist() if name.endswith(ending)]
        for name in whole.namelist():
            if name != left_out:
                copy.writestr(name, b"" if name == changed else whole.read(name))
        copy.writestr("kokoro_lab/secret.txt", b"")
    assert release.archive_faults("it", release.files_in(less), release.tracked()) == sorted(
        (
            f"it lacks {left_out}",
            f"it has another {changed}",
            "it has a file that is no source: kokoro_lab/secret.txt",
        )
    )


def test_the_sdist_alone_makes_the_same_wheel(
    release: ModuleType, built: tuple[Path, Path], tmp_path: Path
) -> None:
    wheel, sdist = built
    assert release.sdist_faults(sdist, wheel, tmp_path) == []


@pytest.mark.test_all
@pytest.mark.model
def test_the_installed_wheel_does_its_work_far_from_the_checkout(
    release: ModuleType, built: tuple[Path, Path], tmp_path: Path
) -> None:
    away = tmp_path / "away"
    away.mkdir()
    commands = release.installed(built[0], tmp_path / "venv")
    assert list(release.installation_faults(commands, away)) == []
    (next((tmp_path / "venv").rglob("kokoro_lab/g2p/vocab.json"))).unlink()
    assert "fails" in next(release.installation_faults(commands, away))


# ------------------------------------------------------------------------------------------- going back


@pytest.mark.test_all
@pytest.mark.model
def test_the_variant_takes_speech_back_to_what_it_was(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoken(variant: str | None) -> tuple[str, np.ndarray]:
        if variant is None:
            monkeypatch.delenv("KOKORO_VARIANT", raising=False)
        else:
            monkeypatch.setenv("KOKORO_VARIANT", variant)
        settings.cache_clear()
        loaded = load_engine()
        return loaded.config.variant, loaded.synthesize("No.", seed=7).samples

    before = engine.synthesize("No.", seed=7).samples
    try:
        default, other = spoken(None)
        back, again = spoken("fp32")
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    assert (default, back) == ("int8", "fp32")
    assert len(other) != len(before) or (other != before).any(), "there was something to go back from"
    assert (again == before).all()


# -------------------------------------------------------------------------------------------- container


def test_the_container_is_small_unprivileged_and_local(repository: Path) -> None:
    text = (repository / "Containerfile").read_text()
    steps = [line.split() for line in text.replace("\\\n", " ").splitlines() if line and line[0].isupper()]
    said = [" ".join(step) for step in steps]
    stages = [step[1] for step in steps if step[0] == "FROM"]
    assert len(stages) == 2, "built in one, run in another"
    assert all(re.search(r":3\.1[12]\.\d+-slim-\w+$", stage) for stage in stages), (
        "a version, and no `latest`"
    )
    users = [step[1] for step in steps if step[0] == "USER"]
    assert users
    assert users[-1] not in ("root", "0")
    (install,) = [line for line in said if "pip install --python" in line]
    assert "--constraints requirements/lock.txt --build-constraints requirements/lock.txt ." in install
    assert not re.search(r"\[\w|--extra", install), "the base alone"
    (uv,) = re.findall(r"uv==[0-9.]+", text)
    assert uv in (repository / "Makefile").read_text(), "the one that made the lock"
    assert not any(step[0] == "ADD" for step in steps), "nothing is fetched past the lock"
    assert "127.0.0.1:8880:8880" in text, "published on the loopback, unless somebody says otherwise"
    copied = " ".join(re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)).split()
    for source in copied:
        assert (repository / source).exists(), source
    project = (repository / "pyproject.toml").read_text()
    hooks = re.findall(r'^path = "(\S+_build\.py)"', project, re.MULTILINE)
    assert hooks
    assert all(hook.startswith(tuple(copied)) for hook in hooks), "what builds the wheel"
    (zig,) = re.findall(r"ziglang==[0-9.]+", text)
    assert zig in (repository / "Makefile").read_text(), "the one that makes wheels"
