"""Fills and reads a folder of weights for a machine without a network.

    <folder>/kokoro-v1.0.fp32.onnx, voices/, …    by their names below the folder `weights` of the cache
    <folder>/kokoro-weights.json                  size and SHA-256 of each file, and how the folder is used

`FilledFolder` takes files from such a folder. It checks their sizes and digests against the catalogue, and
not against `kokoro-weights.json`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from kokoro_lab._version import __version__
from kokoro_lab.errors import DiskFull, IntegrityError, SourceUnavailable, WeightsError
from kokoro_lab.weights.catalogue import WeightFile
from kokoro_lab.weights.clients import is_disk_full
from kokoro_lab.weights.joining import CHUNK_BYTES, place, sha256_of
from kokoro_lab.weights.progress import progress_bar
from kokoro_lab.weights.sources import Hub, Registry, describe
from kokoro_lab.weights.store import every_file, files_of, weights_home
from kokoro_lab.weights.verified import size_and_time

LIST = "kokoro-weights.json"


class FilledFolder:
    """A folder that `kokoro-lab fetch --to` filled, or the folder `weights` of another cache. Its methods
    are those of `Hub`.

    Parameters
    ----------
    path : Path
        The folder; nothing is written to it.
    progress : bool
        Whether to show bars.
    """

    name = "folder"

    def __init__(self, path: Path, progress: bool) -> None:
        self.path = path.expanduser()
        self.progress = progress

    def room(self, files: Sequence[WeightFile]) -> int:
        return sum(file.bytes for file in files)

    def get(self, files: Sequence[WeightFile], folder: Path) -> Iterator[WeightFile]:
        if not self.path.is_dir():
            raise SourceUnavailable(f"There is no folder {self.path}.", mend="Mount it, or name another.")
        held = [file for file in files if (self.path / file.name).is_file()]
        with progress_bar(f"folder: {describe(held)}", self.room(held), self.progress) as tick:
            damage = ""
            for file in held:
                try:
                    place(file, self._chunks(file), folder, tick)
                except IntegrityError as error:
                    damage = damage or error.message  # the others may be right
                    continue
                yield file
        mend = "Run `kokoro-lab fetch --to` for that folder again, on a machine with a network"
        if damage:
            raise IntegrityError(
                f"{self.path} is damaged, or was filled by another version than {__version__}: {damage}",
                mend=f"{mend}: it puts right what is not.",
            )
        if lacking := [file for file in files if file not in held]:
            raise SourceUnavailable(
                f"{self.path} does not hold {describe(lacking)}.",
                mend=f"{mend}, with every --variant that is wanted here.",
            )

    def forget(self, files: Sequence[WeightFile]) -> None:
        """Do nothing: this source keeps no unfinished files."""

    def _chunks(self, file: WeightFile) -> Iterator[bytes]:
        try:
            with (self.path / file.name).open("rb") as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
        except OSError as error:  # not the disk that is written to, which has another mend
            raise SourceUnavailable(f"{self.path / file.name} cannot be read: {error.strerror}.") from error


WeightSource = Hub | Registry | FilledFolder
"""Where weight files come from."""


def fill(
    folder: Path, files: Sequence[WeightFile], *, home: Path | None = None, progress: bool = True
) -> tuple[str, ...]:
    """Copy `files` of the cache into `folder`, verified, and write the list of all weights in it.

    Parameters
    ----------
    folder : Path
        The folder, made if it does not exist. A file that is there already is hashed if its size is right,
        and stays if its digest is right, too.
    files : sequence of WeightFile
        Files to copy, which have all been fetched.
    home : Path, optional
        Cache folder; `Settings.home` unless given.
    progress : bool
        Whether to show a bar on standard error.

    Returns
    -------
    tuple of str
        Names of the files that were written.

    Raises
    ------
    DiskFull, WeightsError
        There is not enough room, or the folder cannot be written.
    IntegrityError, SourceUnavailable
        A file of the cache is damaged or gone.
    """
    from kokoro_lab.containers.plain_json import write_json

    cache = FilledFolder(weights_home(home) / "weights", progress)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lacking = [file for file in files if not _is_right(file, folder)]
        needed, free = cache.room(lacking), shutil.disk_usage(folder).free
        if needed > free:
            raise _no_room(folder, f"{needed / 1e6:.0f} MB needed, {free / 1e6:.0f} MB free")
        written = tuple(file.name for file in cache.get(lacking, folder))
        listed = [file for file in every_file() if size_and_time(folder / file.name)[0] == file.bytes]
        contents = {
            "what": f"weights of kokoro-lab {__version__}",
            "use": "kokoro-lab fetch --from FOLDER, or KOKORO_SOURCE=FOLDER",
            "files": {file.name: {"bytes": file.bytes, "sha256": file.sha256} for file in listed},
        }
        write_json(folder / LIST, contents)
    except (IntegrityError, SourceUnavailable) as error:
        raise type(error)(
            f"The cache cannot be copied: {error.message}", mend="Run the same command with --force."
        ) from error
    except OSError as error:
        if is_disk_full(error):
            raise _no_room(folder, "it is full") from error
        raise WeightsError(
            f"{folder} cannot be written: {error.strerror or error}.", field="--to", value=str(folder)
        ) from error
    return written


def held_by(folder: Path) -> tuple[WeightFile, ...]:
    """The files that `folder` must provide: all voices, the tagger, and the files that its list names. If it
    has no list, all weight files that are in it count instead."""
    try:
        names = set(json.loads((folder / LIST).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):  # the folder `weights` of a cache has no list
        names = {file.name for file in every_file() if (folder / file.name).is_file()}
    names.update(file.name for file in files_of(()))
    return tuple(file for file in every_file() if file.name in names)


def _is_right(file: WeightFile, folder: Path) -> bool:
    path = folder / file.name
    return size_and_time(path)[0] == file.bytes and sha256_of(path) == file.sha256


def _no_room(folder: Path, why: str) -> DiskFull:
    return DiskFull(
        f"Not enough room in {folder}: {why}.",
        field="--to",
        value=str(folder),
        mend="Free some space, name another folder, or take fewer along: `--variant`.",
    )
