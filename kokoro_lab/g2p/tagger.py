"""spaCy's tagger without the pipeline around it: the same operations on the same weights, so the same tags.

Half of what spaCy takes for a sentence of 20 words is not arithmetic but the layers that pass it on. Here
the layers of `en_core_web_sm` (hash embeddings of six features of a word, a maxout layer that mixes them,
four residual maxout layers over a window of three words, and one linear layer) are called in order, each
operation by the function of thinc that spaCy itself calls.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kokoro_lab.scheduling.one_thread import product

EPSILON = 1e-08
"""What thinc adds to a variance before it divides by its root."""
WINDOW_LAYERS = 4
REMEMBERED_TEXTS = 256
"""After so many, new words are forgotten, or a long run would grow without end. Forgotten at once, most of
the next text's words would be new again, which takes as long as a sixth of its reading."""

Floats = NDArray[np.float32]


class TaggedToken(NamedTuple):
    """One token, by the names that spaCy has for what misaki reads."""

    text: str
    tag_: str
    whitespace_: str


class _Maxout:
    """A maxout layer with the layer norm behind it."""

    def __init__(self, maxout: Any, norm: Any) -> None:
        self._ops = maxout.ops
        weights = maxout.get_param("W")
        self._shape = weights.shape[:2]
        self._weights = np.ascontiguousarray(weights.reshape(-1, weights.shape[2]).T)
        self._bias = maxout.get_param("b").reshape(-1)
        self._gain, self._shift = norm.get_param("G"), norm.get_param("b")

    def __call__(self, inputs: Floats) -> Floats:
        mapped = product(inputs, self._weights)
        mapped += self._bias
        best, _ = self._ops.maxout(mapped.reshape(len(mapped), *self._shape))
        width = best.shape[1]
        best -= np.add.reduce(best, axis=1, keepdims=True) / width
        variance = np.add.reduce(best * best, axis=1, keepdims=True) / width
        best *= (variance + EPSILON) ** -0.5
        best *= self._gain
        best += self._shift
        normed: Floats = best
        return normed


class Tagger:
    """Tokens of a text with their Penn tags, by a loaded spaCy model of its own. For one thread at a time.

    Parameters
    ----------
    nlp : spacy.Language
        With the components `tok2vec` and `tagger` of the small English model.

    Raises
    ------
    ValueError
        The model is built otherwise.
    """

    def __init__(self, nlp: Any) -> None:
        self._nlp = nlp
        tok2vec, tagger = nlp.get_pipe("tok2vec").model, nlp.get_pipe("tagger")
        layers = [*tok2vec.walk(), *tagger.model.walk()]
        named = {name: [layer for layer in layers if layer.name == name] for name in _LAYERS}
        counts = {name: len(found) for name, found in named.items()}
        if counts != _LAYERS:
            raise ValueError(f"the tagger has the layers {counts}; only {_LAYERS} is known here")
        self._ops = tok2vec.ops
        (features,), (linear,) = named["extract_features"], named["softmax"]
        self._columns = features.attrs["columns"]
        self._embeddings = [(each.attrs["seed"], each.get_param("E")) for each in named["hashembed"]]
        self._mix, *self._windows = map(_Maxout, named["maxout"], named["layernorm"])
        self._linear = np.ascontiguousarray(linear.get_param("W").T), linear.get_param("b")
        self._remembered, self._remaining = ExitStack(), 0
        strings = nlp.vocab.strings
        self._labels = [strings[strings[label]] for label in tagger.labels]

    def __call__(self, text: str) -> list[TaggedToken]:
        if not self._remaining:
            self._remembered.close()
            self._remembered.enter_context(self._nlp.memory_zone())
            self._remaining = REMEMBERED_TEXTS
        self._remaining -= 1
        doc = self._nlp.make_doc(text)
        if not len(doc):
            return []
        tags = self._tags(doc.to_array(self._columns))
        return [TaggedToken(t.text, tag, t.whitespace_) for t, tag in zip(doc, tags, strict=True)]

    def _tags(self, features: NDArray[np.uint64]) -> list[str]:
        """Of `features`, a row a token."""
        mixed = self._mix(np.hstack(self._embedded(features)))
        # Beyond the ends are zeros, as many rows as windows reach out there; each layer needs one fewer
        hidden = np.pad(mixed, ((WINDOW_LAYERS, WINDOW_LAYERS), (0, 0)))
        for layer in self._windows:
            hidden = hidden[1:-1] + layer(self._ops.seq2col(hidden, 1)[1:-1])
        weights, bias = self._linear
        best = (product(hidden, weights) + bias).argmax(axis=1)
        return [self._labels[k] for k in best.tolist()]

    def _embedded(self, features: NDArray[np.uint64]) -> list[Floats]:
        columns = np.ascontiguousarray(features.T)
        return [
            self._ops.gather_add(table, self._ops.hash(column, seed) % len(table))
            for column, (seed, table) in zip(columns, self._embeddings, strict=True)
        ]


_LAYERS = {
    "extract_features": 1,
    "hashembed": 6,
    "expand_window": WINDOW_LAYERS,
    "maxout": 1 + WINDOW_LAYERS,
    "layernorm": 1 + WINDOW_LAYERS,
    "softmax": 1,
}
