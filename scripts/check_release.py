"""Is this fit to be released? Version and changelog, wheel and sdist, and what is installed from them.

    python scripts/check_release.py           # also `make release-check`; nothing is downloaded

The wheel is built as it would be for the world, compared with the checkout, installed alone into a new
environment that borrows its dependencies from this one, and has to work there, far from the checkout.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
HEADINGS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Chosen, and why")
UNRELEASED = "Unreleased"
_SECTION = re.compile(r"^## \[(?P<name>[^]]+)\](?: - (?P<date>\S+))?$", re.MULTILINE)
_SEMANTIC = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)((a|b|rc)[0-9]+)?(\.dev[0-9]+)?")
IN_THE_SDIST = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "requirements/lock.txt")
SPOKEN = "Dr. Smith paid $3.50."


@dataclass(frozen=True)
class Section:
    """One version of the changelog: its name, its date if it has one, and its headings with their lines."""

    name: str
    date: str | None
    entries: Mapping[str, int]


def sections(changelog: str) -> list[Section]:
    """The versions of a changelog, as they stand."""
    found = list(_SECTION.finditer(changelog))
    ends = [match.start() for match in found[1:]] + [len(changelog)]
    parted = []
    for match, end in zip(found, ends, strict=True):
        parts = re.split(r"^### (.+)$", changelog[match.end() : end], flags=re.MULTILINE)[1:]
        entries = {
            heading: len(re.findall(r"^- ", text, re.MULTILINE))
            for heading, text in zip(parts[::2], parts[1::2], strict=True)
        }
        parted.append(Section(match["name"], match["date"], entries))
    return parted


def version_faults(version: str, changelog: str) -> list[str]:
    """What is wrong with a version and its changelog; nothing if they fit."""
    if not _SEMANTIC.fullmatch(version):
        return [f"{version} is no semantic version"]
    faults = []
    found = sections(changelog)
    if not found or found[0].name != UNRELEASED:
        faults.append(f"the first section is not [{UNRELEASED}]")
    for section in found:
        faults += [
            f"[{section.name}] has a heading {name!r}" for name in section.entries if name not in HEADINGS
        ]
    released = [section for section in found if section.name != UNRELEASED]
    for section in released:
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", section.date or ""):
            faults.append(f"[{section.name}] has no date, as 2026-01-31")
        if not any(section.entries.values()):
            faults.append(f"[{section.name}] has no line")
    try:
        versions = [Version(section.name) for section in released]
    except InvalidVersion as error:
        return [*faults, str(error)]
    if versions != sorted(set(versions), reverse=True):
        faults.append("versions do not stand from the newest to the oldest, each once")
    open_entries = {name: n for name, n in (found[0].entries if found else {}).items() if n}
    if Version(version) in versions:
        if Version(version) != versions[0]:
            faults.append(f"{version} is not the newest version of the changelog")
        if open_entries:
            faults.append(f"[{UNRELEASED}] has lines, and {version} is released: raise the version")
        return faults
    if not open_entries:
        faults.append(f"{version} has no section, and [{UNRELEASED}] no line")
    if versions and Version(version) < versions[0]:
        faults.append(f"{version} is older than {versions[0]}, which is released")
    elif versions and Version(version).release < (least := least_next(versions[0], open_entries)).release:
        faults.append(f"what stands in [{UNRELEASED}] makes it {least} at least, and it is {version}")
    return faults


def least_next(last: Version, entries: Mapping[str, int]) -> Version:
    """The least version that may follow `last` with these entries, by Semantic Versioning.

    A change or removal needs a major version (before 1.0 a minor one), an addition a minor version. After a
    pre-release comes the version to which it belongs, whatever has changed since.
    """
    if last.is_prerelease:
        return Version(last.base_version)
    if {"Changed", "Removed"} & entries.keys() and last.major:
        return Version(f"{last.major + 1}.0.0")
    if {"Changed", "Removed", "Added", "Deprecated"} & entries.keys():
        return Version(f"{last.major}.{last.minor + 1}.0")
    return Version(f"{last.major}.{last.minor}.{last.micro + 1}")


def build(folder: Path, source: Path = ROOT) -> tuple[Path, Path]:
    """The wheel and the sdist of `source`, built by the installed hatchling."""
    for kind in ("wheel", "sdist"):
        _run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)], cwd=source)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def files_in(archive: Path) -> dict[str, str]:
    """Files of a wheel or an sdist and their SHA-256; of an sdist, without its folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: _sha256(wheel.read(name)) for name in wheel.namelist()}
    with tarfile.open(archive) as sdist:
        return {
            member.name.partition("/")[2]: _sha256(handle.read())
            for member in sdist.getmembers()
            if member.isfile() and (handle := sdist.extractfile(member)) is not None
        }


def tracked(source: Path = ROOT) -> dict[str, str]:
    """Files of the package that git knows or would take, and their SHA-256 as they are now."""
    listed = _run(["git", "ls-files", "-co", "--exclude-standard", "-z", "kokoro_lab"], cwd=source).split(
        "\0"
    )
    return {
        name: _sha256((source / name).read_bytes()) for name in listed if name and (source / name).exists()
    }


def archive_faults(name: str, files: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    """Files of the package that an archive lacks, has otherwise, or has beside those of the checkout."""
    ours = {path: digest for path, digest in files.items() if path.startswith("kokoro_lab/")}
    faults = [f"{name} lacks {path}" for path in wanted.keys() - ours.keys()]
    faults += [f"{name} has a file that is no source: {path}" for path in ours.keys() - wanted.keys()]
    faults += [
        f"{name} has another {path}" for path in ours.keys() & wanted.keys() if ours[path] != wanted[path]
    ]
    return sorted(faults)


def sdist_faults(sdist: Path, wheel: Path, folder: Path) -> list[str]:
    """Whether the wheel can be built from the sdist alone, and is the same."""
    names = files_in(sdist)
    faults = [f"the sdist lacks {name}" for name in IN_THE_SDIST if name not in names]
    with tarfile.open(sdist) as opened:
        opened.extractall(folder, filter="data")
    source = next(path for path in folder.iterdir() if path.is_dir())
    again = folder / "again"
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(again)], cwd=source)
    if files_in(next(again.glob("*.whl"))) != files_in(wheel):
        faults.append("the wheel from the sdist is another one than from the checkout")
    return faults


def installed(wheel: Path, folder: Path) -> Path:
    """Install the wheel alone into a new environment that borrows the rest from this one; its `bin`."""
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    _run([*command, "--quiet", "--no-deps", "--no-index", "--no-cache-dir", str(wheel)])
    packages = _run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
    # A path in a .pth is searched, but the .pth files in it are not: this checkout stays out of sight. What
    # this environment borrows itself is named, too
    borrowed = [path for path in sys.path if Path(path).name == "site-packages"]
    Path(packages, "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return folder / "bin"


def installation_faults(bin_: Path, away: Path) -> Iterator[str]:
    """What the installed package cannot do, in the folder `away`, where there is no checkout."""
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    found = _run(
        [str(bin_ / "python"), "-c", "import kokoro_lab; print(kokoro_lab.__file__)"], away, variables
    )
    # Resolved: the temporary folder of macOS is behind a link
    if not Path(found.strip()).resolve().is_relative_to(bin_.parent.resolve()):
        yield "not the installed package is imported, but another one"
        return
    for words, said in (
        (["--help"], "speak"),
        (["doctor"], "native operators"),
        (["text"], "Doctor Smith"),
    ):
        try:
            answer = _run([str(bin_ / "kokoro-lab"), *words], away, variables, given=SPOKEN)
        except RuntimeError as error:
            yield f"`kokoro-lab {' '.join(words)}` fails: {error}"
            continue
        if said.lower() not in answer.lower():
            yield f"`kokoro-lab {' '.join(words)}` does not say {said!r}"


def faults() -> Iterator[str]:
    """All faults of a release."""
    from kokoro_lab import __version__

    if _run(["git", "status", "--porcelain"], cwd=ROOT):
        yield "there are changes that are not committed"
    yield from version_faults(__version__, (ROOT / "CHANGELOG.md").read_text("utf-8"))
    with tempfile.TemporaryDirectory(prefix="kokoro-release-") as made:
        folder = Path(made)
        for name in ("dist", "sdist", "away"):
            (folder / name).mkdir()
        wheel, sdist = build(folder / "dist")
        wanted = tracked()
        yield from archive_faults("the wheel", files_in(wheel), wanted)
        yield from archive_faults("the sdist", files_in(sdist), wanted)
        yield from sdist_faults(sdist, wheel, folder / "sdist")
        yield from installation_faults(installed(wheel, folder / "venv"), folder / "away")


def _run(
    command: list[str], cwd: Path | None = None, env: Mapping[str, str] | None = None, given: str = ""
) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=env, input=given, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-600:]
        raise RuntimeError(f"{Path(command[0]).name} ended with {done.returncode}: {said}")
    return done.stdout


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    wrong = list(faults())
    print("\n".join(wrong) if wrong else "fit to be released")  # noqa: T201
    sys.exit(bool(wrong))
