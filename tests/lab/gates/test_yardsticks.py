"""Sentences that others report on: which are read, what the peer says, and what the judge must refuse."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.peers import KokoroOnnx
from kokoro_lab.lab.clips import worst_first
from kokoro_lab.lab.gates import word_errors, yardsticks
from kokoro_lab.lab.results import failed
from kokoro_lab.speech.engine import Engine
from scripts.harvard_sentences import vectors

pytest.importorskip("jiwer", reason="word errors need the extra `quality`, which is not installed")


class Hummer:
    """Has kokoro-onnx's shape, and says a text with the tiny voice in two chunks."""

    def __init__(self, hum: Engine) -> None:
        self.hum = hum

    async def create_stream(
        self, text: str, voice: str, *, lang: str
    ) -> AsyncGenerator[tuple[Samples, int], None]:
        samples = self.hum.synthesize(text, voice=voice).samples
        yield samples[:5000], SAMPLE_RATE_HZ
        yield samples[5000:], SAMPLE_RATE_HZ


class Scribe:
    """Understands the recordings that it knows; of all others it hears the same words."""

    def __init__(self, known: dict[bytes, str]) -> None:
        self.known = known

    def transcribe(self, samples: Samples, sample_rate_hz: int, language: str = "en") -> str:
        return self.known.get(samples.tobytes(), "something else altogether")


def table(*, lost: int = 0) -> pd.DataFrame:
    """All lists, 5760 words; the peer lost a word in every 25th sentence, ours also in the first `lost`."""
    wrong = (np.arange(720) % 25 == 0).astype(int)
    return pd.DataFrame(
        {
            "text": [f"harvard_{of:02}_{at:02}" for of in range(1, 73) for at in range(1, 11)],
            "language": "en",
            "voice": "af_heart",
            "said": "",
            "words": 8,
            "characters": 40,
            "word_errors_reference": wrong,
            "word_errors_candidate": wrong + (np.arange(720) < lost),
            "character_errors_reference": 0,
            "character_errors_candidate": 0,
            "heard_reference": "",
            "heard_candidate": "",
        }
    )


@pytest.fixture
def all_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of 72 lists of ten, of which the first list is the true one."""
    known = [text.text for text in yardsticks.sentences()]
    lines = [*known, *(f"Sentence {letters(number)}." for number in range(10, 720))]
    words = "\n".join(line.lower().rstrip(".") for line in lines).replace(",", "")
    monkeypatch.setattr(yardsticks, "WORDS_SHA256", hashlib.sha256(words.encode()).hexdigest())
    file = tmp_path / "harvard.txt"
    # Others' files have blank lines and blanks at the ends
    file.write_text("\n\n".join(f"{line} " for line in lines), "utf-8")
    return str(file)


def letters(number: int) -> str:
    """The digits of a number as letters: a word that no other number has."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_the_repository_has_the_first_list() -> None:
    texts = yardsticks.sentences()
    assert [text.kind for text in texts] == ["list 1"] * 10
    assert texts[0].text == "The birch canoe slid on the smooth planks."


def test_a_file_has_72_lists_of_ten(all_lists: str) -> None:
    texts = yardsticks.sentences(corpus=all_lists)
    assert [text.kind for text in texts] == [f"list {number}" for number in range(1, 73) for _ in range(10)]
    assert len({text.id for text in texts}) == 720
    assert texts[:10] == yardsticks.sentences()
    assert (texts[-1].id, texts[-1].text) == ("harvard_72_10", "Sentence hbj.")


def test_lists_are_chosen_by_numbers_and_ranges(all_lists: str) -> None:
    chosen = yardsticks.sentences("3, 70-71", all_lists)
    assert [text.kind for text in chosen[::10]] == ["list 3", "list 70", "list 71"]


@pytest.mark.parametrize("lists", ["0", "73", "5-3", "1-", "first", "1,,2", "-4"])
def test_a_list_that_does_not_exist_is_refused(lists: str) -> None:
    with pytest.raises(ParameterError, match="no list"):
        yardsticks.sentences(lists)


def test_a_list_that_is_not_in_the_repository_says_where_it_is() -> None:
    with pytest.raises(ParameterError, match="not list 5") as refused:
        yardsticks.sentences("1-5")
    assert "harvard_sentences.py" in str(refused.value.mend)


def test_another_file_is_refused(all_lists: str) -> None:
    file = Path(all_lists)
    lines = file.read_text("utf-8").splitlines()
    for others in (lines[2:], [*lines, "One more."], [*lines[2:], *lines[:2]], ["Something else."], []):
        file.write_text("\n".join(others), "utf-8")
        with pytest.raises(ParameterError) as refused:
            yardsticks.sentences("1", all_lists)
        assert refused.value.field == "corpus"
    with pytest.raises(ParameterError, match="no line of text"):
        yardsticks.sentences("1", str(file.with_name("missing.txt")))


def test_the_package_is_read_as_r_wrote_it() -> None:
    """Two vectors, one after another, and between them an object that is none."""
    objects = [["apple", "crème"], None, ["It's late.", ""]]
    assert list(vectors(b"".join(map(stored, objects)))) == [["apple", "crème"], ["It's late.", ""]]


def stored(strings: list[str] | None) -> bytes:
    """One object of R's package data, in version 3 of its serialisation; None is R's NULL."""
    body = b"X\n" + struct.pack(">4i", 3, 0x040201, 0x030500, 5) + b"UTF-8"
    if strings is None:
        body += struct.pack(">i", 254)
    else:
        body += struct.pack(">2i", 16, len(strings))
        body += b"".join(struct.pack(">2i", 0x8009, len(s.encode())) + s.encode() for s in strings)
    return struct.pack(">i", len(body)) + zlib.compress(body)


def test_the_peer_is_heard_whole_and_loaded_once_a_voice(hum: Engine) -> None:
    loaded: list[tuple[str, str, int]] = []

    def load(variant: str, voice: str, threads: int) -> KokoroOnnx:
        loaded.append((variant, voice, threads))
        return KokoroOnnx(Hummer(hum), variant, voice, "en-us", {"version": "0"})

    peer = yardsticks.PeerStreams("int8", 1, load)
    said = [text.text for text in yardsticks.sentences("1")[:2]]
    for text in said:
        heard = peer.synthesize(text, voice="hum")
        assert np.array_equal(heard, hum.synthesize(text, voice="hum").samples)
    assert loaded == [("int8", "hum", 1)]
    assert peer.facts == {"version": "0"}


def test_what_is_understood_as_well_passes_and_half_a_point_more_does_not() -> None:
    assert not failed(yardsticks.judge(table()))
    assert not failed(yardsticks.judge(table(lost=10)))
    assert failed(yardsticks.judge(table(lost=29)))  # of 5760 words that is the margin itself


def test_the_difference_is_paired_over_sentences() -> None:
    found = yardsticks.difference(table(lost=29))
    assert found.value == pytest.approx(100 * 29 / 5760)
    assert found.units == 720
    assert 0 < found.low < found.value < found.high < 1
    same = yardsticks.difference(table())
    assert (same.low, same.value, same.high) == (0, 0, 0)


def test_the_lists_of_which_others_published_rates_stand_apart() -> None:
    found = yardsticks.figures(table(lost=10))
    assert found["read_words_count"] == 5760
    assert found["lists_1_to_5_words_count"] == 400
    assert found["lists_1_to_5_word_error_rate_reference_percent"] == pytest.approx(0.5)
    assert found["lists_1_to_5_word_error_rate_candidate_percent"] == pytest.approx(3.0)
    assert found["lists_1_to_5_difference_points"] == pytest.approx(2.5)
    rows = yardsticks.beside(table(lost=10))
    assert rows.loc["lists_1_to_5", "difference_points"].startswith("+2.50 (")
    assert rows.loc["lists_1_to_5", "kokoro_onnx_percent"].startswith("0.50 (")
    others = table()[lambda rows: rows.text >= "harvard_06"]
    assert list(yardsticks.beside(others).index) == ["read"]


def test_both_are_written_down_and_every_fault_is_caught(hum: Engine) -> None:
    texts = yardsticks.sentences("1")[:3]
    peer = yardsticks.PeerStreams(
        "fp32", 1, lambda variant, voice, threads: KokoroOnnx(Hummer(hum), variant, voice, "en-us")
    )
    scribe = Scribe(
        {
            sound.tobytes(): text.text
            for text in texts
            for sound in (
                word_errors.streamed(hum, text.text, "hum").samples,
                peer.synthesize(text.text, voice="hum"),
            )
        }
    )
    sounds: dict[int, dict[str, Clip | Samples]] = {}
    found = yardsticks.measure(hum, peer, ["hum"], scribe, texts=texts, sounds=sounds)
    assert list(found.text) == [text.id for text in texts]
    assert not found[["word_errors_candidate", "word_errors_reference"]].to_numpy().any()
    worst = worst_first(word_errors.judged_clips(found, sounds))[0]
    assert worst.candidate().words
    assert not worst.reference().words  # the peer does not say when its words are heard
    controls = yardsticks.controls(found, hum, scribe)
    assert [control.name for control in controls if not control.caught] == []
    assert len(controls) == 6
    deaf = Scribe({})
    deaf.known = dict.fromkeys(scribe.known, "")
    missed = yardsticks.controls(found.assign(word_errors_candidate=8), hum, deaf)
    assert not missed[0].caught
