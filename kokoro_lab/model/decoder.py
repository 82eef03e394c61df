"""From token ids to samples. `Decoder` is what the engine knows; how it decodes is behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kokoro_lab.config import EngineConfig
from kokoro_lab.datatypes import Samples
from kokoro_lab.dsp import require_finite
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.model.graphs import DURATIONS, with_durations
from kokoro_lab.model.graphs import signature as signature_of
from kokoro_lab.model.providers import make_session


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """One segment on its way out of the model.

    Parameters
    ----------
    durations : numpy.ndarray
        int64, one per input id with both pads, in frames of 600 samples (25 ms).
    blocks : iterator of numpy.ndarray
        float32 mono at 24 kHz, in order, each checked to be finite; together
        `600 * durations.sum()` samples.
    """

    durations: npt.NDArray[np.int64]
    blocks: Iterator[Samples]


class Decoder(Protocol):
    """What speaks a segment. Safe to call from several threads."""

    def decode(self, token_ids: Sequence[int], style: npt.NDArray[np.float32], speed: float) -> Decoded: ...


class WholeGraph:
    """The export as it was published, run once a segment.

    Parameters
    ----------
    path : Path
        A Kokoro export; its input names are found out.
    """

    def __init__(self, path: Path, config: EngineConfig) -> None:
        self._name = path.name
        self._session = make_session(with_durations(path), config)
        self._names = signature_of(self._session, path.name)

    @property
    def active_provider(self) -> str:
        return str(self._session.get_providers()[0])

    def decode(self, token_ids: Sequence[int], style: npt.NDArray[np.float32], speed: float) -> Decoded:
        """Run the graph.

        Parameters
        ----------
        token_ids : sequence of int
            1 to 510 ids, without pads.
        style : numpy.ndarray
            float32 (1, 256).
        speed : float
            Divides every duration.

        Raises
        ------
        SynthesisError
            The model gave samples that are not finite.
        """
        ids = np.array([[PAD_ID, *token_ids, PAD_ID]], dtype=np.int64)
        feed = {
            self._names.tokens: ids,
            self._names.style: style,
            self._names.speed: np.array([speed], np.float32),
        }
        audio, durations = self._session.run([self._names.audio, DURATIONS], feed)
        samples = np.ascontiguousarray(audio, dtype=np.float32).reshape(-1)
        require_finite(samples, f"{self._name}, {len(token_ids)} token ids")
        # Behind this tensor the graph clips to one frame: at high speed some round to none
        frames = np.maximum(np.rint(durations), 1).astype(np.int64).reshape(-1)
        return Decoded(frames, iter((samples,)))
