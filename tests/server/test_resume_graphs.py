"""A stream is resumed only on the graphs that began it: others give other samples."""

from __future__ import annotations

import pytest

from kokoro_lab.server.requests.resume import digest_of
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.utterance import utterance_of


def test_other_graphs_of_the_same_weights_are_another_stream(
    hum: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    utterance = utterance_of("Hello.", {"voice": "hum"}, streamed=True)

    def digest(sha256: str) -> str:
        graphs = {"vocoder": {"nodes": 3, "bytes": 5, "sha256": sha256}}
        monkeypatch.setattr(hum.decoder, "conversion", {"graphs": graphs, "damage": ""}, raising=False)
        return digest_of(utterance, hum, chunk_s=0.05, written=("wav", 24_000))

    assert digest("a" * 64) == digest("a" * 64) != digest("b" * 64)
