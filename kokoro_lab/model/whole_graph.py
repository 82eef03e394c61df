"""An export as it was published, run as one graph: no stages, and no window by window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from kokoro_lab.config import SPEED_MAX, SPEED_MIN
from kokoro_lab.datatypes import Fallback
from kokoro_lab.dsp.block import CHECK_FILES
from kokoro_lab.engine_config import WHOLE_MODEL, EngineConfig
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.graphs.signatures import DURATIONS, frames_of, with_durations
from kokoro_lab.graphs.signatures import signature as signature_of
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest, finite
from kokoro_lab.model.delivery import ProsodyChanges
from kokoro_lab.sessions.placement import Placement
from kokoro_lab.sessions.providers import stage_session
from kokoro_lab.weights.voices import Voice

UPSTREAM_FP16 = "Upstream's fp16 model does this on some CPUs: try the variant fp32."


class WholeGraph:
    """An export as it was published, run once a segment.

    Parameters
    ----------
    path : Path
        A Kokoro export; its input names are found out.
    """

    def __init__(self, path: Path, config: EngineConfig) -> None:
        self._name = path.name
        self._requested_provider = config.provider
        self._session = stage_session(WHOLE_MODEL, with_durations(path), config)
        self._names = signature_of(self._session, path.name)

    @property
    def placement(self) -> Placement:
        """Where it runs at this moment."""
        return Placement.of(self._requested_provider, (self._session,))

    @property
    def details(self) -> Mapping[str, str]:
        return {"stage_providers": str(self.placement)}

    def predicts(self, voice: Voice) -> str | None:
        return "this variant runs as one graph"

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        token_ids, speed, delivery = asked.token_ids, asked.speed, asked.delivery
        fallbacks = () if delivery is None else tuple(_not_by_word(delivery, speed))
        if delivery is not None:
            speed = delivery.kept(speed * (delivery.one_rate or 1.0))
        ids = np.array([[PAD_ID, *token_ids, PAD_ID]], dtype=np.int64)
        feed = {
            self._names.tokens: ids,
            self._names.style: asked.style,
            self._names.speed: np.array([speed], np.float32),
        }
        audio, durations = self._session.run([self._names.audio, DURATIONS], feed)
        samples = np.ascontiguousarray(audio, dtype=np.float32).reshape(-1)
        mend = UPSTREAM_FP16 if "fp16" in self._name else CHECK_FILES
        blocks = finite(iter((samples,)), f"{self._name}, {len(token_ids)} token ids", mend)
        return DecodedSegment(frames_of(durations), blocks, fallbacks)


def _not_by_word(delivery: ProsodyChanges, speed: float) -> Iterator[Fallback]:
    """What an export that runs as a whole cannot do."""
    whole = "this variant runs as one graph"
    if delivery.one_rate is None:
        yield Fallback("prosody", f"rates of single words are not followed: {whole}")
    if delivery.changes_pitch:
        yield Fallback("prosody", f"pitch is not followed: {whole}")
    asked = speed / delivery.stretch * (delivery.one_rate or 1.0)
    if not SPEED_MIN <= asked <= SPEED_MAX:
        yield Fallback("prosody", f"a speed of {asked:.2f}: kept within {SPEED_MIN:g} to {SPEED_MAX:g}")
