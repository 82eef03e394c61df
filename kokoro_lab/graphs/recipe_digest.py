"""What graphs are made by, as a digest: the name of the folder that keeps them.

    recipe    each graph's stage and passes, what the passes are given, the files of this room and of those
              whose passes they are, and the operators of ours that the graphs use
    key       the recipe, and the versions of the libraries that carry it out

Nobody counts a number up: where a file of this room or an operator is another one, so is the recipe, and
graphs are made anew (10 s).
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kokoro_lab.graphs import rewriting
from kokoro_lab.native import operators
from kokoro_lab.native.toolchain import LIBRARIES
from kokoro_lab.weights.joining import sha256_of

Passes = tuple[rewriting.Pass, ...]
Recipes = Mapping[str, tuple[str, Passes]]
"""Graph → the stage that it is made of, and how."""
ROOM = Path(__file__).parent
PICKLE_PROTOCOL = 5
"""The same in every version of Python that is supported."""


def key_of(recipe: str) -> str:
    """A recipe's digest with the versions of what carries it out."""
    carried_out = [f"{name} {version(name)}" for name in LIBRARIES]
    return hashlib.sha256("\n".join([recipe, *carried_out]).encode()).hexdigest()


def recipe_digest(recipes: Recipes, *, native_operators: bool) -> str:
    """SHA-256 of how graphs are made, in lower-case hex.

    Parameters
    ----------
    native_operators : bool
        Whether the graphs use operators of ours: then their sources and compiler flags are part of it.
    """
    digest = hashlib.sha256()
    files = {path for path in ROOM.iterdir() if path.is_file()}
    for name, (stage, passes) in recipes.items():
        digest.update(f"{name} of {stage}\n".encode())
        for rewrite in passes:
            digest.update(f"{name_of(rewrite)}\n".encode() + _given(rewrite))
            files.add(Path(str(sys.modules[unbound(rewrite).__module__].__file__)))
    if native_operators:
        digest.update(repr(operators.FLAGS).encode())
        files.update(operators.sources())
    for content in sorted(sha256_of(path) for path in files):  # whatever they are called
        digest.update(content.encode())
    return digest.hexdigest()


def unbound(rewrite: Any) -> Any:
    """The function of a pass that is given something beside the graph."""
    while isinstance(rewrite, partial):
        rewrite = rewrite.func
    return rewrite


def name_of(rewrite: Any) -> str:
    return str(unbound(rewrite).__name__)


def _given(rewrite: Any) -> bytes:
    """What a pass is given beside the graph: the same bytes for the same values in every process."""
    given = b""
    while isinstance(rewrite, partial):
        given += pickle.dumps((rewrite.args, rewrite.keywords), protocol=PICKLE_PROTOCOL)
        rewrite = rewrite.func
    return given
