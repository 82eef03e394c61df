"""A part-of-speech tagger: gives the tags of spaCy's small English model, from its files, without spaCy.

The tagger is a small neural network. A token has six features: its norm (mostly the word in lower case), its
first letter, its last three, its shape (`Xxxx-d`), whether a space follows, and whether it is white space.
The hash of a feature selects four rows of a table, which are added up. A maxout layer mixes the six sums;
four residual maxout layers each look at a token and its neighbours; one linear layer gives a score for each
tag.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from kokoro_lab.g2p.hashes import row_hashes, string_hash
from kokoro_lab.g2p.tokeniser import Tokeniser
from kokoro_lab.scheduling.one_thread import product
from kokoro_lab.text import tables

EPSILON = 1e-08
"""Added to a variance before values are divided by its square root."""
WINDOW_LAYERS = 4
REMEMBERED_TOKENS, REMEMBERED_FEATURES = 2048, 4096
LONGEST_SHAPE = 100
_NORMS = tables.names(__package__)["tagger norm"]

Floats = NDArray[np.float32]


class TaggedToken(NamedTuple):
    """One token, its Penn tag, and the white space after it (empty if no white space follows)."""

    text: str
    tag: str
    whitespace: str


class _Maxout:
    """A maxout layer, and the layer norm after it."""

    def __init__(self, maxout: Mapping[str, Floats], norm: Mapping[str, Floats]) -> None:
        outputs, candidates, inputs = maxout["W"].shape
        self._shape = outputs, candidates
        self._weights = np.ascontiguousarray(maxout["W"].reshape(-1, inputs).T)
        self._bias = maxout["b"].reshape(-1)
        self._gain, self._shift = norm["G"], norm["b"]

    def __call__(self, inputs: Floats) -> Floats:
        mapped = product(inputs, self._weights)
        mapped += self._bias
        best: Floats = mapped.reshape(len(mapped), *self._shape).max(axis=2)
        width = best.shape[1]
        best -= np.add.reduce(best, axis=1, keepdims=True) / width
        variance = np.add.reduce(best * best, axis=1, keepdims=True) / width
        best *= (variance + EPSILON) ** -0.5
        best *= self._gain
        best += self._shift
        return best


class Tagger:
    """Tokens of a text with their Penn tags. Thread-safe.

    Parameters
    ----------
    folder : Path
        Folder with the files `tokenizer`, `tok2vec/model`, `tagger/model`, `tagger/cfg` and
        `vocab/lookups.bin` of spaCy's `en_core_web_sm` 3.8.

    Raises
    ------
    ValueError
        The model's layers are not the expected ones.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenise = Tokeniser(_unpacked(folder / "tokenizer"))
        layers = [*_layers(folder / "tok2vec/model"), *_layers(folder / "tagger/model")]
        named = {name: [layer for layer in layers if layer.name == name] for name in _LAYERS}
        counts = {name: len(found) for name, found in named.items()}
        if counts != _LAYERS:
            raise ValueError(f"the tagger in {folder} has the layers {counts}; only {_LAYERS} is known here")
        embeddings = [(layer.attributes["seed"], layer.parameters["E"]) for layer in named["hashembed"]]
        self._feature = lru_cache(REMEMBERED_FEATURES)(lambda k, number: _embedded(number, *embeddings[k]))
        self._embedding = lru_cache(REMEMBERED_TOKENS)(self._embed)
        maxouts = zip(named["maxout"], named["layernorm"], strict=True)
        self._mix, *self._windows = (_Maxout(m.parameters, norm.parameters) for m, norm in maxouts)
        linear = named["softmax"][0].parameters
        self._linear = np.ascontiguousarray(linear["W"].T), linear["b"]
        self._norms: dict[int, str] = _unpacked(folder / "vocab/lookups.bin")["lexeme_norm"]
        self._labels: list[str] = json.loads((folder / "tagger/cfg").read_text("utf-8"))["labels"]

    def __call__(self, text: str) -> list[TaggedToken]:
        """Tokens in order. Joined with their spaces, they are `text`."""
        tokens = self._tokenise(text)
        tags = self._tags(np.stack([self._embedding(*token) for token in tokens])) if tokens else ()
        return [TaggedToken(t.text, tag, " " * t.space) for t, tag in zip(tokens, tags, strict=True)]

    def _tags(self, embedded: Floats) -> list[str]:
        """The tag of each token, from `embedded`, (tokens, 576)."""
        # The sentence gets rows of zeros on both sides, one for each layer; a layer uses up one on each side
        hidden = np.pad(self._mix(embedded), ((WINDOW_LAYERS, WINDOW_LAYERS), (0, 0)))
        for layer in self._windows:
            hidden = hidden[1:-1] + layer(np.hstack([hidden[:-2], hidden[1:-1], hidden[2:]]))
        weights, bias = self._linear
        best = (product(hidden, weights) + bias).argmax(axis=1)
        return [self._labels[k] for k in best.tolist()]

    def _embed(self, text: str, norm: str | None, space: bool) -> Floats:
        strings = (norm or self._norm(text), text[0], text[-3:], _shape(text))
        numbers = (*map(_number, strings), int(space), int(text.isspace()))
        return np.concatenate([self._feature(k, number) for k, number in enumerate(numbers)])

    def _norm(self, text: str) -> str:
        """The form of a word that the tagger sees: one spelling for variants of a word (`colour`), one mark
        for variants of a mark, otherwise lower case."""
        found = self._norms.get(_number(text))
        return found if found is not None else _NORMS.get(text, text.lower())


class _Layer(NamedTuple):
    name: str
    attributes: dict[str, Any]
    parameters: dict[str, Floats]


def _unpacked(path: Path) -> Any:
    return msgpack.unpackb(path.read_bytes(), strict_map_key=False)


def _layers(path: Path) -> list[_Layer]:
    model = _unpacked(path)
    attributes = [{k: msgpack.unpackb(v) for k, v in each.items()} for each in model["attrs"]]
    parameters = [{k: _array(v) for k, v in each.items()} for each in model["params"]]
    return [*map(_Layer, (node["name"] for node in model["nodes"]), attributes, parameters)]


def _array(packed: Mapping[bytes, Any]) -> Floats:
    """An array, unpacked from msgpack-numpy's format."""
    array: Floats = np.frombuffer(packed[b"data"], packed[b"type"]).reshape(packed[b"shape"])
    return array


def _embedded(number: int, seed: int, table: Floats) -> Floats:
    rows = [row % len(table) for row in row_hashes(number, seed)]
    summed: Floats = np.add.reduce(table[rows], axis=0)
    return summed


def _number(text: str) -> int:
    """spaCy's number of a string: fixed for its own symbols, else a hash."""
    symbols = _symbols()
    return symbols[text] if text in symbols else string_hash(text)


@cache
def _symbols() -> dict[str, int]:
    return {row["symbol"]: int(row["number"]) for row in tables.rows(__package__, "tagger_symbols.tsv")}


def _shape(text: str) -> str:
    """The shape of a word, such as `Xxxxx-dd`: X for a capital, x for a small letter, d for a digit. No
    character is repeated more than four times."""
    if len(text) >= LONGEST_SHAPE:
        return "LONG"
    shape = ""
    for character in text:
        kind = character
        if character.isalpha():
            kind = "X" if character.isupper() else "x"
        elif character.isdigit():
            kind = "d"
        if not shape.endswith(kind * 4):
            shape += kind
    return shape


_LAYERS = {"hashembed": 6, "maxout": 1 + WINDOW_LAYERS, "layernorm": 1 + WINDOW_LAYERS, "softmax": 1}
