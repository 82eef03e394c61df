"""Folders of graphs in the cache: used if they are whole, made if they are not.

<home>/derived/<kind>-<first 12 of the key>/
    manifest.json     the size and SHA-256 of every other file in the folder
<home>/derived/verified.json    what was hashed, at which size and time

A folder's key identifies the recipe of its graphs (see `recipe_digest`). Folders of other keys stay until
nothing has used them for `UNUSED_S`: another version of this package may be using them.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from kokoro_lab.graphs.signatures import graph_path
from kokoro_lab.weights.disk import told_apart
from kokoro_lab.weights.verified import Promised, damage_of, record

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"
KEY_CHARACTERS = 12
UNUSED_S = 7 * 86_400
"""Time in seconds without use after which a folder of graphs is removed. A folder has 100 to 400 MB, and each
edit of a pass makes another one."""
UNFINISHED_S = 3_600
"""Time in seconds after which an unfinished folder, which a killed process left, is removed."""


class GraphFolder(NamedTuple):
    """A folder of graphs in the cache. `damage` says in words what is damaged, and is empty if the folder is
    whole. `bytes` is the size of all its files, and `used_at_s` when it was used last, in seconds since
    1970."""

    folder: Path
    damage: str
    bytes: int
    used_at_s: float

    @property
    def of_older_version(self) -> bool:
        """Whether an earlier release made this folder: its name then ends in a version number (`-v12`), which
        was raised by hand, instead of a key. Its manifest lists only graphs."""
        return bool(re.search(r"-v[\d.]+$", self.folder.name))


def derived_home(root: Path) -> Path:
    """The folder for everything that is made from the weights."""
    return root / "derived"


def whole_folder(root: Path, kind: str, key: str, make: Callable[[Path, str], None]) -> Path:
    """The folder with the graphs of a kind and a key. If it is missing, or a file is not as the manifest
    states, the folder is made first.

    Parameters
    ----------
    root : Path
        The folder that `weights_home` returns.
    kind : str
        The first part of the folder's name: the digest of the weights, and the variant.
    key : str
        The key of the recipe by which they are made.
    make : callable
        Makes the folder. Called with its path, and with what was damaged in the folder that it replaces, in
        words; empty if there was no such folder.

    Raises
    ------
    WeightsError
        The cache cannot be written, or what `make` raises.
    """
    home = derived_home(root)
    folder = home / f"{kind}-{key[:KEY_CHARACTERS]}"
    if damage_in(folder, home) is None:
        with suppress(OSError):
            os.utime(folder)  # so that it counts as used
        return folder
    with told_apart(root, []):
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / ".lock"):
            damage = damage_in(folder, home)
            if damage is not None:  # else another process made it meanwhile
                if damage:
                    log.warning("%s: %s. The graphs are made anew.", folder, damage)
                make(folder, damage)
                if damage := damage_in(folder, home):
                    raise OSError(f"{damage}, though it was made just now")
                _remove_unused(folder, kind)
    return folder


def damage_in(folder: Path, home: Path, *, again: bool = False) -> str | None:
    """What is damaged in a folder of graphs, in words: None if it is whole, empty if there is no such folder.

    A file that `home` has on record as hashed is hashed again only with `again`.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        files = promised_by(manifest, folder)
    except (FileNotFoundError, NotADirectoryError):
        return f"{MANIFEST} is missing" if folder.is_dir() else ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{MANIFEST} cannot be read ({type(error).__name__}: {error})"
    try:
        return damage_of(files, folder, home, again=again) or None
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"


def promised_by(manifest: Mapping[str, Any], folder: Path) -> Promised:
    """File → its size in bytes and its SHA-256, for every file that a manifest lists.

    Raises
    ------
    KeyError, TypeError, AttributeError
        The file is no manifest of ours.
    """
    graphs = {graph_path(folder, name).name: about for name, about in manifest["graphs"].items()}
    listed = {**graphs, **manifest["files"]}
    return {name: (int(about["bytes"]), str(about["sha256"])) for name, about in listed.items()}


def kept_folders(root: Path, *, again: bool = False) -> Iterator[GraphFolder]:
    """Every folder of graphs in the cache, whatever its kind and key. With `again`, every file is hashed,
    even if it is on record as hashed."""
    home = derived_home(root)
    for path in sorted(home.glob(f"*/{MANIFEST}")):
        folder = path.parent
        size = sum(file.stat().st_size for file in folder.iterdir())
        kept = GraphFolder(folder, "", size, folder.stat().st_mtime)
        damage = "" if kept.of_older_version else damage_in(folder, home, again=again)
        yield kept._replace(damage=damage or "")


def _remove_unused(kept: Path, kind: str) -> None:
    """Remove folders of this kind that have other keys and that nothing has used for `UNUSED_S`, and
    unfinished folders older than `UNFINISHED_S`. The caller holds the lock."""
    now_s, removed, freed = time.time(), [], 0
    of_this_kind = re.compile(rf"{re.escape(kind)}-(v[\d.]+|[0-9a-f]{{{KEY_CHARACTERS}}})")
    for folder in kept.parent.iterdir():
        unfinished = folder.name.startswith(".making-")
        if folder == kept or not (unfinished or of_this_kind.fullmatch(folder.name)):
            continue
        with suppress(OSError):
            if now_s - folder.stat().st_mtime < (UNFINISHED_S if unfinished else UNUSED_S):
                continue
            freed += sum(file.stat().st_size for file in folder.iterdir())
            shutil.rmtree(folder)
            removed.append(folder.name)
    if removed:
        record(kept.parent, {})  # strikes off what is not there any more
        days = UNUSED_S // 86_400
        log.warning(
            "Removed graphs that nothing had used for %d days (%.0f MB): %s.",
            days,
            freed / 1e6,
            ", ".join(removed),
        )
