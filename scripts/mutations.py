"""Break the product on purpose, one line at a time, and see which tests notice (minutes; fetched weights).

python scripts/mutations.py [WORD ...]: only mutations whose names or files hold one of these words.
They stand in tests/mutations, a file a subject. settings.toml has no changes of text but fields of
`Settings` and of `EngineConfig`: for each there is a mutation by which the program ignores it.

The working tree is never touched: its files, as they are now, are copied to a temporary folder, and each
mutation is put in there, judged by the tests that are expected to notice, and taken out again. Exits with 1
if one of them survives: then a fault of that kind could be committed unseen.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change to one file that breaks what users get.

    Parameters
    ----------
    name : str
        What is broken.
    file : str
        Path in the repository.
    old, new : str
        Text that stands in the file once, and what takes its place.
    tests : tuple of str
        Tests, as pytest names them, that are there to notice.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def of(self, source: str) -> str:
        """The source with the mutation in it.

        Raises
        ------
        ValueError
            What is to be changed does not stand in it exactly once.
        """
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has {source.count(self.old)} times: {self.old!r}")
        return source.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Options:
    """A class of options: its file, the text after it, its name, and one of its fields with the default."""

    file: str
    behind: str
    name: str
    field: str
    default: str

    def ignoring(self, field: str, tests: Sequence[str]) -> Mutation:
        """The mutation by which the field always has its default, however it was set; records are made as
        before.

        `dataclasses` is let through, which copies and records what was set; pydantic needs no leave.
        """
        reads = f"_{self.name.lower()}_reads"
        new = f"""def {reads}(self, name):
    import sys
    if name != {field!r} or sys._getframe(1).f_code.co_filename.endswith("dataclasses.py"):
        return object.__getattribute__(self, name)
    field = {self.field}
    return {self.default}


{self.name}.__getattribute__ = {reads}


{self.behind}"""
        owner = "the setting " if self.name == "Settings" else "EngineConfig."
        return Mutation(f"{owner}{field} is ignored", self.file, self.behind, new, tuple(tests))


OPTIONS = {
    "settings": Options(
        "kokoro_lab/config.py",
        "@cache\ndef settings(",
        "Settings",
        "Settings.model_fields[name]",
        "field.get_default(call_default_factory=True)",
    ),
    "engine_config": Options(
        "kokoro_lab/engine_config.py",
        "def _coreml_options(",
        "EngineConfig",
        "EngineConfig.__dataclass_fields__[name]",
        "field.default_factory() if callable(field.default_factory) else field.default",
    ),
}


def listed(folder: Path) -> tuple[Mutation, ...]:
    """The mutations of a folder: a TOML file a subject, `[[mutation]]` for each, with `Mutation`'s fields.

    Or a table of `OPTIONS`: field of the class = its tests.
    """
    found: list[Mutation] = []
    for file in sorted(folder.glob("*.toml")):
        subject = tomllib.loads(file.read_text("utf-8"))
        found += [
            Mutation(**{**entry, "tests": tuple(entry["tests"])}) for entry in subject.get("mutation", ())
        ]
        for part, options in OPTIONS.items():
            found += [options.ignoring(field, tests) for field, tests in subject.get(part, {}).items()]
    return tuple(found)


MUTATIONS = listed(Path(__file__).parents[1] / "tests" / "mutations")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What tests said: their names where they failed, and all that they wrote where they could not run."""

    failed: tuple[str, ...]
    broken: str = ""


def copied(repository: Path, folder: Path) -> Path:
    """The files of a checkout that git knows or would add, as they are now, in `folder`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (repository / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, folder / name)
    # Some tests ask git for the files of the checkout that they stand in
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def outcome_of(folder: Path, tests: Iterable[str]) -> Outcome:
    """Run tests in a copy, on the package that lies there."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rfE",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    ]
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "MUTATED_COPY": str(folder),  # for tests that run the installed command, in an environment of its own
        "PYTHONDONTWRITEBYTECODE": "1",  # a mutation may come and go within the clock of a file's time
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # they make every start longer, and no test here needs one
    }
    run = subprocess.run(
        [*command, *tests], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    # 0: all passed, 1: some failed; anything else is no verdict
    broken = "" if run.returncode in (0, 1) else run.stdout + run.stderr
    return Outcome(tuple(failed), broken)


def outcome_with(mutation: Mutation, folder: Path) -> Outcome:
    """What the tests say of a copy while the mutation is in it."""
    path = folder / mutation.file
    source = path.read_text("utf-8")
    path.write_text(mutation.of(source), "utf-8")
    try:
        return outcome_of(folder, mutation.tests)
    finally:
        path.write_text(source, "utf-8")


def survivors(mutations: Sequence[Mutation], folder: Path) -> list[Mutation]:
    """The mutations that no test noticed; a line about each is printed as soon as it is known.

    Raises
    ------
    RuntimeError
        Tests that fail, or cannot run, without any mutation.
    """
    named = sorted({test for mutation in mutations for test in mutation.tests})
    untouched = outcome_of(folder, named)
    if untouched.failed or untouched.broken:
        raise RuntimeError(f"Without any mutation: {untouched.failed or untouched.broken}")
    survived = []
    for mutation in mutations:
        outcome = outcome_with(mutation, folder)
        seen_by = ", ".join(dict.fromkeys(re.sub(r"^.*::|\[.*", "", test) for test in outcome.failed))
        verdict = "BROKEN" if outcome.broken else "caught" if outcome.failed else "SURVIVED"
        sys.stdout.write(f"{verdict:8}  {mutation.name:48}  {seen_by}{outcome.broken[-400:]}\n")
        sys.stdout.flush()
        if verdict != "caught":
            survived.append(mutation)
    return survived


def main(words: Sequence[str]) -> int:
    """Run the mutations that `words` ask for, all if there are none; the exit code."""
    chosen = [m for m in MUTATIONS if not words or any(word in m.name or word in m.file for word in words)]
    if not chosen:  # pytest would run all tests if it were given none
        sys.stdout.write(f"No mutation has one of these words.\n\n{__doc__}")
        return 1
    with tempfile.TemporaryDirectory() as name:
        left = survivors(chosen, copied(Path(__file__).parents[1], Path(name)))
    sys.stdout.write(f"{len(chosen) - len(left)} of {len(chosen)} mutations are caught\n")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
