"""The controls that speak, clicked without a browser."""

from __future__ import annotations

import pytest

from kokoro_lab.lab import speaking_panel
from kokoro_lab.lab.speaking_panel import SpeakingPanel
from kokoro_lab.speech.engine import Engine


@pytest.fixture
def loaded() -> list[str]:
    """Variants, as they are loaded."""
    return []


@pytest.fixture
def panel(hum: Engine, loaded: list[str], monkeypatch: pytest.MonkeyPatch) -> SpeakingPanel:
    """With the tiny voice for every variant."""
    monkeypatch.setattr(speaking_panel, "reading_voices", lambda: ("hum", "af_heart"))
    monkeypatch.setitem(speaking_panel.LANGUAGE_OF_PREFIX, "h", "hi")
    monkeypatch.setitem(speaking_panel.GENDERS, "u", "unknown")

    def load(variant: str) -> Engine:
        loaded.append(variant)
        return hum

    made = SpeakingPanel(load)
    made.voice.value = "hum"
    return made


def test_it_speaks_what_is_chosen(panel: SpeakingPanel, loaded: list[str]) -> None:
    assert loaded == []  # nothing before somebody asks for it
    panel.speak.click()
    assert "<audio autoplay" in panel.heard.value
    assert "hum, " in panel.heard.value
    length = seconds(panel)
    panel.speed.value = 2.0
    panel.speak.click()
    assert seconds(panel) < 0.7 * length
    assert len(loaded) == 1
    panel.variant.value = "fp32"
    panel.speak.click()
    assert loaded[1:] == ["fp32"]


def seconds(panel: SpeakingPanel) -> float:
    return float(panel.heard.value.partition("hum, ")[2].partition(" s")[0])


def test_what_is_wrong_is_said_where_it_is_looked_for(panel: SpeakingPanel) -> None:
    panel.text.value = " "
    panel.speak.click()
    assert 'role="alert"' in panel.heard.value
    assert not panel.speak.disabled


def test_a_voice_is_offered_with_its_language_and_sex() -> None:
    panel = SpeakingPanel()
    assert ("bm_george (en-gb, male)", "bm_george") in panel.voice.options
    assert panel.voice.value == "af_heart"
    assert ("zf_xiaoxiao (zh, female)", "zf_xiaoxiao") in panel.voice.options
