"""Computes matrix products only on the calling thread, so that they take no cores from the decoder.

NumPy multiplies with OpenBLAS, which divides a large product among threads. These then spin for about 20 ms,
waiting for another product; on two cores, the first window of a stream took 1.7 times as long because of it.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = TypeVar("Floats", npt.NDArray[np.float32], npt.NDArray[np.float64])

ONE_THREAD_PRODUCTS = 2**18
"""From this number of multiplications on, OpenBLAS divides a product of two matrices among threads. For a
matrix and a vector the number is 9,216; `einsum` computes those products, and uses one thread."""

MOST_ROWS = 256
"""The most rows that are multiplied at a time. With more, each block would be a single column, and OpenBLAS
would divide its product among threads after all. Tagging a row of 800 marks took 3 s then."""


def product(inputs: Floats, weights: Floats) -> Floats:
    """`inputs @ weights`.

    Parameters
    ----------
    inputs : numpy.ndarray
        float32 or float64 (k,) or (n, k), a few rows.
    weights : numpy.ndarray
        The same type, (k, m).

    Returns
    -------
    numpy.ndarray
        The same type, (m,) or (n, m).
    """
    if inputs.ndim == 1:
        found: Floats = np.einsum("k,km->m", inputs, weights)
        return found
    if len(inputs) == 1:  # numpy takes a single row for a vector
        row: Floats = product(inputs[0], weights)[np.newaxis]
        return row
    if len(inputs) > MOST_ROWS:
        starts = range(0, len(inputs), MOST_ROWS)
        all_rows: Floats = np.concatenate([product(inputs[at : at + MOST_ROWS], weights) for at in starts])
        return all_rows
    width = max(1, ONE_THREAD_PRODUCTS // max(1, inputs.size))
    parts = []
    for start in range(0, weights.shape[1], width):
        columns = weights[:, start : start + width]
        # A single column is a vector as well
        parts.append(np.einsum("nk,km->nm", inputs, columns) if columns.shape[1] == 1 else inputs @ columns)
    joined: Floats = np.concatenate(parts, axis=1)
    return joined
