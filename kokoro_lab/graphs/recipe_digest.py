"""What graphs are made by, as a digest: the name of the folder that keeps them.

    recipe    each graph's stage and passes, what the passes are given, what they and their helpers do
              (see `source_text`), and the operators of ours that the graphs use
    key       the recipe, and the versions of the libraries that carry it out

Nobody counts a number up: an edited pass, exclusion or operator is another recipe, and its graphs are made
anew. A file that is moved, a comment or a docstring is none.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from kokoro_lab.graphs import rewriting, signatures, source_text
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.source_text import module_path, source_digest
from kokoro_lab.native import operators
from kokoro_lab.native.toolchain import LIBRARIES
from kokoro_lab.weights.joining import sha256_of

Passes = tuple[rewriting.Pass, ...]
Recipes = Mapping[str, tuple[str, Passes]]
"""Graph → the stage that it is made of, and how."""

MEMO = "recipes.json"
"""File beside the graphs: digests of recipes, with the digest of each file that they were made from."""
MOST_REMEMBERED = 16
DATA = tuple(Path(__file__).with_name(name) for name in ("exclusions.json", "ranges.npz"))
"""What the recipes of this package are given beside code."""


def key_of(recipe: str) -> str:
    """A recipe's digest with the versions of what carries it out."""
    carried_out = [f"{name} {version(name)}" for name in LIBRARIES]
    return hashlib.sha256("\n".join([recipe, *carried_out]).encode()).hexdigest()


def recipe_digest(recipes: Recipes, *, native_operators: bool) -> str:
    """SHA-256 of how graphs are made, in lower-case hex.

    Parameters
    ----------
    native_operators : bool
        Whether the graphs use operators of ours: then their sources are part of it.
    """
    return _digest(recipes, native_operators)[0]


def _digest(recipes: Recipes, native_operators: bool) -> tuple[str, frozenset[str]]:
    """The digest, and the modules that were read for it."""
    digest = hashlib.sha256()
    for name, (stage, passes) in recipes.items():
        digest.update(f"{name} of {stage}\n".encode())
        for rewrite in passes:
            for part in _given(rewrite):
                digest.update(part)
    # Stages and layers are cut out of the model in the same way for whatever recipe
    roots: list[Any] = [
        signatures.cut,
        AdainLayers,
        *(rewrite for _, passes in recipes.values() for rewrite in passes),
    ]
    text, modules = source_digest([*roots, (operators.__name__, "FLAGS")] if native_operators else roots)
    digest.update(text.encode())
    if native_operators:
        for source in sorted(sha256_of(path) for path in operators.sources()):
            digest.update(source.encode())
    return digest.hexdigest(), modules


def _given(rewrite: Any) -> Iterator[bytes]:
    """What a pass is called, and what it is given beside the graph."""
    while isinstance(rewrite, partial):
        yield from _bytes_of((rewrite.args, rewrite.keywords))
        rewrite = rewrite.func
    yield f"{rewrite.__name__}\n".encode()


def _bytes_of(value: Any) -> Iterator[bytes]:
    """A value's content, the same in every process.

    Raises
    ------
    TypeError
        A value whose content is not known to be all that there is.
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        yield f"{type(value).__name__} {value!r};".encode()
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape};".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Mapping):
        yield f"mapping of {len(value)};".encode()
        for name in sorted(value):
            yield from _bytes_of((name, value[name]))
    elif isinstance(value, (tuple, list)):
        yield f"sequence of {len(value)};".encode()
        for each in value:
            yield from _bytes_of(each)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _bytes_of({field.name: getattr(value, field.name) for field in fields(value)})
    else:
        raise TypeError(f"a pass cannot be given a {type(value).__name__}: its content has no digest")


def remembered_digest(
    what: str, made_by: Callable[[], Recipes], home: Path, *, native_operators: bool
) -> str:
    """The digest of recipes of this package, found in a file of `home` unless what they are made of changed.

    Reading two dozen sources takes 0.1 s, hashing them 1 ms.

    Parameters
    ----------
    what : str
        Whose recipes: of one name they are always made by the same code.
    made_by : callable
        Gives the recipes; equal for equal `what`.
    """
    path = home / MEMO
    entries = _entries(path)
    for entry in entries.get(what, []):
        with suppress(KeyError, TypeError, AttributeError):
            if entry["files"] == _hashed(entry["files"]) and isinstance(entry["recipe"], str):
                return str(entry["recipe"])
    digest, modules = _digest(made_by(), native_operators)
    read = [module_path(name) for name in (*modules, _root_module(made_by), __name__)]
    ours = [*operators.sources(), module_path(operators.__name__)] if native_operators else []
    names = sorted({os.path.relpath(file, _package()) for file in (*read, *ours, *DATA)})
    _remember(path, what, {"recipe": digest, "files": _hashed(names)})
    return digest


def _package() -> Path:
    return module_path(source_text.PACKAGE).parent


def _root_module(made_by: Any) -> str:
    while isinstance(made_by, partial):
        made_by = made_by.func
    return str(made_by.__module__)


def _hashed(names: Iterable[str]) -> dict[str, str | None]:
    """Name below the package → SHA-256; None for a file that is not there any more."""
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = sha256_of(_package() / name)
        except OSError:
            found[name] = None
    return found


def _entries(path: Path) -> dict[str, list[Any]]:
    try:
        held = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}  # it is only worked out again
    if not isinstance(held, dict):
        return {}
    return {str(what): entries for what, entries in held.items() if isinstance(entries, list)}


def _remember(path: Path, what: str, entry: Mapping[str, Any]) -> None:
    entries = _entries(path)
    entries[what] = [entry, *entries.get(what, [])][:MOST_REMEMBERED]
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    with suppress(OSError):  # in a home that may only be read it is worked out at each start
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_text(json.dumps(entries, indent=1) + "\n", "utf-8")
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
