"""Dressed letters are read as the letters that a reader sees; what means more than its letters stays."""

from __future__ import annotations

import pytest

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.letters import undressed
from kokoro_lab.text.sanitise import sanitise


@pytest.mark.parametrize(
    ("dressed", "plain"),
    [
        ("The ﬁrst oﬃce, ﬅ", "The first office, st"),
        ("Congreſs", "Congress"),
        ("𝐇𝐞𝐥𝐥𝐨 𝓦𝓸𝓻𝓵𝓭, 𝟚𝟘 𝚖𝚘𝚗𝚘", "Hello World, 20 mono"),
        ("ℝ, ℓ and ℋ", "R, l and H"),
        ("ｆｕｌｌ Ｗｉｄｔｈ １２", "full Width 12"),
        ("Ⓗⓔⓛⓛⓞ", "Hello"),
        ("🄷🄸", "HI"),
        ("🅷🅴🅻🅻🅾 🅐🅑", "HELLO AB"),
        ("h̶e̶l̶l̶o̶ ̶y̶o̶u̶", "hello you"),
        ("u̲n̲d̲e̲r̲, s̷l̷a̷s̷h̷", "under, slash"),
        ("ʜᴇʟʟᴏ ᴛʜᴇʀᴇ", "hello there"),
        ("раypal and Аpple", "paypal and Apple"),
        ("ΑΒC", "ABC"),
    ],
)
def test_dressed_letters_are_plain(dressed: str, plain: str) -> None:
    assert sanitise(dressed).text == plain


@pytest.mark.parametrize(
    "meant",
    [
        *("m²", "x³", "5 ℃", "№ 5", "™", "½", "①", "🅰", "🇩🇪", "Ⅻ", "㎏", "㏒"),
        *("ΔT", "μm", "Wi-Фи", "Сбербанк", "λόγος", "ΣΑΣ", "Москва"),
        *("naïve", "crème brûlée", "Łódź", "tiếng Việt", "नमस्ते", "ɪn ðə", "[ˈkɪtn]", "ʀ"),
    ],
)
def test_what_means_more_than_its_letters_stays(meant: str) -> None:
    assert undressed(AlignedText.of(meant)).text == meant


def test_each_letter_stands_for_its_own_place() -> None:
    clean = sanitise("a ﬁne 𝐇i h̶i̶")
    assert clean.text == "a fine Hi hi"
    assert [clean.span(i, i + 1) for i in (2, 3, 4, 7, 8, 10, 11)] == [
        (2, 3),
        (2, 3),
        (3, 4),
        (6, 7),
        (7, 8),
        (9, 10),
        (11, 12),
    ]
