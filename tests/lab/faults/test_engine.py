"""Each fault strikes at its seam, where its seed says, and what comes of it is speech or an error."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from kokoro_lab.datatypes import Fallback
from kokoro_lab.errors import OutOfMemory, ProviderError
from kokoro_lab.lab.bench.persistent import OfEngine, listen
from kokoro_lab.lab.bench.received import differences
from kokoro_lab.lab.faults import Injector, Strike
from kokoro_lab.lab.faults.engine import FaultyEngine, injected
from kokoro_lab.speech.chunker import CHUNK_S
from kokoro_lab.speech.engine import Engine, load_engine
from kokoro_lab.text.aligned import AlignedText
from tests.lab.faults import made

TEXT = "The kettle is on. Nobody is in, and nobody has been all day. Rain fell on the quiet town."


@pytest.fixture(scope="module")
def whole(hum: Engine) -> bytes:
    return bytes(listen(OfEngine(hum, TEXT, "hum")).pcm)


def test_without_a_scenario_it_speaks_as_the_engine_that_it_shares(hum: Engine, whole: bytes) -> None:
    injector = Injector()
    faulty = FaultyEngine(hum, injector, reads_anew=False)
    heard = listen(OfEngine(faulty, TEXT, "hum"))
    assert (heard.pcm, heard.complete, heard.breaks) == (whole, True, [])
    assert injector.struck == []
    (spoken,) = injector.spoken
    assert spoken.samples == heard.samples
    assert [TEXT[a:b] for a, b in spoken.words][:4] == ["The", "kettle", "is", "on"]


@pytest.mark.parametrize(
    ("fault", "struck"),
    [
        (made.PROVIDER_LOST, [Strike("provider_lost", 1)]),
        (made.ALLOCATION_FAILS, [Strike("allocation_fails", 1)]),
        (made.BALLAST, [Strike("ballast", 64)]),
        (made.FULL, [Strike("disk_refuses", 0)]),
    ],
)
def test_no_word_is_lost_and_none_repeated(
    hum: Engine, whole: bytes, fault: dict[str, object], struck: list[Strike]
) -> None:
    with injected(hum, made.scenario(fault, transports=("library",))) as faulty:
        heard = listen(OfEngine(faulty, TEXT, "hum"))
        assert faulty.injector.struck == struck
    assert heard.complete
    assert differences(heard.pcm, whole) == (0, 0)
    assert len(heard.breaks) == (fault in (made.PROVIDER_LOST, made.ALLOCATION_FAILS))


def test_a_provider_that_is_lost_is_an_error_of_the_stream(hum: Engine) -> None:
    with (
        injected(hum, made.scenario(made.PROVIDER_LOST, transports=("library",))) as faulty,
        pytest.raises(ProviderError, match="lost on purpose"),
    ):
        list(faulty.stream(TEXT, voice="hum"))


def test_a_fault_of_memory_is_onnx_runtimes_own(hum: Engine) -> None:
    with (
        injected(hum, made.scenario(made.ALLOCATION_FAILS, transports=("library",))) as faulty,
        pytest.raises(OutOfMemory, match="KOKORO_MEMORY_ARENA_SIZE_MB is") as caught,
    ):
        list(faulty.stream(TEXT, voice="hum"))
    assert "Available memory of" in str(caught.value.__cause__)
    assert "smaller than requested" in str(caught.value.__cause__)


def test_one_chunk_in_so_many_is_lost_and_asked_for_again(hum: Engine, whole: bytes) -> None:
    with injected(hum, made.scenario(made.LOST_IN_QUEUE, transports=("library",))) as faulty:
        heard = listen(OfEngine(faulty, TEXT, "hum"))
        lost = [one.at for one in faulty.injector.struck]
    assert heard.complete
    assert differences(heard.pcm, whole) == (0, 0)
    assert 1 <= len(heard.breaks) <= len(lost)  # what the listener has already is not missed
    assert [at // 60 for at in lost] == list(range(lost[-1] // 60 + 1))


def test_a_file_waits_in_no_queue_and_is_whole(hum: Engine) -> None:
    with injected(hum, made.scenario(made.LOST_IN_QUEUE, transports=("library",))) as faulty:
        file = faulty.synthesize(TEXT, voice="hum")
        assert (file.samples == hum.synthesize(TEXT, voice="hum").samples).all()
        assert faulty.injector.struck == []


def test_it_says_of_itself_what_the_engine_says(hum: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a result records: how the graphs were made, and what could not be had."""
    given_up = Fallback("threads", "2 instead of 4")
    whole = Engine(replace(hum.parts, fallbacks=(given_up,), provider_reason="it costs least"))
    monkeypatch.setattr(hum.decoder, "conversion", {"recipe": 1}, raising=False)
    faulty = FaultyEngine(whole, Injector(), reads_anew=False)
    assert faulty.conversion == whole.conversion == {"recipe": 1}
    assert faulty.parts.given_provider == whole.parts.given_provider
    assert given_up in faulty.stream(TEXT, voice="hum").fallbacks


def test_the_same_seed_puts_in_the_same_faults(hum: Engine) -> None:
    struck = []
    for seed in (3, 3, 4):
        with injected(hum, made.scenario(made.LOST_IN_QUEUE, transports=("library",), seed=seed)) as faulty:
            list(faulty.stream(TEXT, voice="hum"))
            struck.append(faulty.injector.struck)
    assert struck[0] == struck[1] != struck[2]


def test_a_missing_chunk_that_nobody_asks_for_again_is_missed(hum: Engine, whole: bytes) -> None:
    with injected(hum, made.scenario(made.LOST_IN_QUEUE, transports=("library",))) as faulty:
        heard = listen(OfEngine(faulty, TEXT, "hum"), asks_again=False)
        lost = len(faulty.injector.struck)
    frame = round(CHUNK_S * 24_000)
    assert differences(heard.pcm, whole)[1] == pytest.approx(lost * frame, abs=frame)


def test_bursts_hold_up_and_lose_nothing(hum: Engine, whole: bytes) -> None:
    with injected(hum, made.scenario({**made.BURSTS, "every_s": 0.001}, transports=("library",))) as faulty:
        heard = listen(OfEngine(faulty, TEXT, "hum"))
        held = len(faulty.injector.struck)
    assert heard.pcm == whole
    assert held
    assert heard.arrivals_s[-1] >= held * 0.01


def test_a_g2p_that_stalls_is_read_past_and_let_go(hum: Engine) -> None:
    with injected(hum, made.scenario(made.STALLS, transports=("library",))) as faulty:
        faulty.front_end.warm("en-us")
        clip = faulty.synthesize(TEXT, voice="hum")
        (spoken,) = faulty.injector.spoken
        began_s = time.monotonic()
        assert faulty.front_end.speakers.of("en-us").read(AlignedText.of("Yes.")).words
    assert clip.report.fallbacks[0].stage == "g2p"
    assert "read by espeak" in clip.report.fallbacks[0].reason
    said = "".join(TEXT[a:b] for a, b in spoken.words)
    assert [*filter(str.isalpha, said)] == [*filter(str.isalpha, TEXT)]
    assert time.monotonic() - began_s < 30


def test_a_full_disk_refuses_to_be_written_to_and_nothing_else(hum: Engine, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("x")
    with injected(hum, made.scenario(made.FULL, transports=("library",))) as faulty:
        stream = faulty.stream(TEXT, voice="hum")
        with pytest.raises(OSError, match="No space left"):
            (tmp_path / "new").write_text("x")
        with pytest.raises(OSError, match="No space left"):
            (tmp_path / "folder").mkdir()
        assert there.read_text() == "x"
        stream.close()
    (tmp_path / "new").write_text("x")


def test_nothing_strikes_while_nobody_is_spoken_to(hum: Engine) -> None:
    with injected(hum, made.scenario(made.PROVIDER_LOST, transports=("library",))) as faulty:
        faulty.warm("hum", text="Ready. Ready. Ready.")
        assert faulty.injector.struck == []


@pytest.mark.test_all
@pytest.mark.model
def test_a_provider_that_is_lost_in_mid_sentence_costs_no_sample_and_no_break(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    text = "The kettle is on, and the window is open."
    undisturbed = listen(OfEngine(engine, text, "af_heart"))
    fault = {"kind": "provider_lost", "at_window": 3}
    with injected(engine, made.scenario(fault, transports=("library",))) as faulty:
        for _ in range(2):
            faulty.injector.arm(made.scenario(fault, transports=("library",)))
            heard = listen(OfEngine(faulty, text, "af_heart"))
            assert faulty.injector.struck == [Strike("provider_lost", 3)]
            assert (heard.complete, heard.breaks) == (True, [])
            assert differences(heard.pcm, undisturbed.pcm) == (0, 0)
        (lost,) = faulty.placement.figures()["fallbacks"]
        assert "CPUExecutionProvider instead of A provider, lost in run 1" in lost
    assert "CPUExecutionProvider instead of A provider, lost in run 1" in caplog.text


@pytest.mark.test_all
@pytest.mark.model
def test_a_fault_of_memory_inside_a_stage_is_onnx_runtimes_own(engine: Engine) -> None:
    text = "The kettle is on, and the window is open."
    undisturbed = listen(OfEngine(engine, text, "af_heart"))
    fault = {"kind": "allocation_fails", "at_window": 3}
    with injected(engine, made.scenario(fault, transports=("library",))) as faulty:
        heard = listen(OfEngine(faulty, text, "af_heart"))
    (said,) = heard.breaks
    assert "KOKORO_MEMORY_ARENA_SIZE_MB is" in str(said)
    assert heard.complete
    assert differences(heard.pcm, undisturbed.pcm) == (0, 0)


@pytest.mark.test_all
@pytest.mark.model
def test_windows_of_fixed_sizes_lose_their_provider_too(engine: Engine) -> None:
    """They stand for the others where Core ML speaks: there, nothing else is lost."""
    text = "The kettle is on, and the window is open."
    fixed = load_engine(config=replace(engine.config, fixed_windows="on"))
    undisturbed = listen(OfEngine(fixed, text, "af_heart"))
    fault = {"kind": "provider_lost", "at_window": 2}
    with injected(fixed, made.scenario(fault, transports=("library",))) as faulty:
        heard = listen(OfEngine(faulty, text, "af_heart"))
        assert faulty.injector.struck == [Strike("provider_lost", 2)]
    assert (heard.complete, heard.breaks) == (True, [])
    assert differences(heard.pcm, undisturbed.pcm) == (0, 0)
