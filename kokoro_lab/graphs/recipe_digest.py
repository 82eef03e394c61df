"""The digest of how graphs are made, by which their folder in the cache is named.

    recipe    the kind of graphs, the files of this folder and others that make them, and our own operators
              that the graphs use
    key       the recipe, and the versions of the libraries that carry it out

There is no version number to raise: if a file of this folder or an operator changes, so does the recipe, and
graphs are made again (10 s).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from kokoro_lab.native import operators
from kokoro_lab.native.toolchain import LIBRARIES
from kokoro_lab.weights.joining import sha256_of

ROOM = Path(__file__).parent


def key_of(recipe: str) -> str:
    """A digest of a recipe's digest and the versions of the libraries by which the recipe is carried out."""
    carried_out = [f"{name} {version(name)}" for name in LIBRARIES]
    return hashlib.sha256("\n".join([recipe, *carried_out]).encode()).hexdigest()


def recipe_digest(kind: str, *, native_operators: bool, others: Iterable[Path] = ()) -> str:
    """SHA-256 of how graphs are made, in lower-case hex.

    Parameters
    ----------
    kind : str
        What the recipe makes: the name of a variant, or a window and its size.
    native_operators : bool
        Whether the graphs use operators of ours. Then these operators' sources and compiler flags are part of
        the digest.
    others : iterable of Path
        Further files that belong to the recipe.
    """
    digest = hashlib.sha256(kind.encode())
    files = {path for path in ROOM.iterdir() if path.is_file()} | set(others)
    if native_operators:
        digest.update(repr(operators.FLAGS).encode())
        files.update(operators.sources())
    for content in sorted(sha256_of(path) for path in files):  # whatever they are called
        digest.update(content.encode())
    return digest.hexdigest()
