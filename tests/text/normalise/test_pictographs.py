"""Emoji are named, once a run, without skin tones."""

from __future__ import annotations

import emoji
import pytest

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise.pictographs import TYPOGRAPHIC, name_emoji, without_emoji
from kokoro_lab.text.sanitise import sanitise


@pytest.mark.parametrize(
    ("original", "read"),
    [
        ("👍🏽", "thumbs up"),
        ("Done ✅.", "Done check mark button."),
        ("so😂😂😂funny", "so face with tears of joy funny"),
        ("😂 😂!", "face with tears of joy!"),
        ("😂👍", "face with tears of joy thumbs up"),
        ("👨‍👩‍👧", "family man woman girl"),
        ("⚠️ Warning: hot", "Warning: hot"),
        ("plain", "plain"),
    ],
)
def test_read_as(original: str, read: str) -> None:
    assert name_emoji(sanitise(original)).text == read


def test_a_name_points_to_its_picture() -> None:
    original = "ok 👍🏽👍🏽 now"
    text = name_emoji(sanitise(original))
    at = text.text.index("thumbs")
    start, end = text.span(at, at + len("thumbs up"))
    assert original[start:end] == "👍🏽👍🏽"


def test_every_emoji_is_named() -> None:
    for each in emoji.EMOJI_DATA:
        if each not in TYPOGRAPHIC and each.rstrip("\ufe0f") not in TYPOGRAPHIC:
            assert name_emoji(AlignedText.of(f"a {each} b")).text != f"a {each} b"


@pytest.mark.parametrize(
    ("written", "read"),
    [("🙂", "हल्की मुस्कान वाला चेहरा"), ("👍🏽👍🏽", "थंब्स अप"), ("❤️", "लाल दिल"), ("🇮🇳", "India"), ("2️⃣", "2")],
)
def test_hindi_has_names_of_its_own_and_english_ones_for_flags(written: str, read: str) -> None:
    assert name_emoji(AlignedText.of(written), "hi").text == read


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("Great 🎉 news 😀😀!", "Great  news !"),
        ("1️⃣ Open", "1 Open"),
        ("👍🏽👨‍👩‍👧 ok ©", " ok ©"),
        ("a🎉b", "a b"),
        ("no emoji", "no emoji"),
    ],
)
def test_emoji_can_be_left_out(written: str, kept: str) -> None:
    found = without_emoji(AlignedText.of(written))
    assert found.text == kept
    assert written[slice(*found.span(len(kept) - 1, len(kept)))] == written[-1]
