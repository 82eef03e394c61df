"""What tests of the player share."""

from __future__ import annotations

import pytest

from tests.playback.fake_card import FakeStream, fake_sounddevice


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> list[FakeStream]:
    """The streams that were opened on a fake sound card."""
    return fake_sounddevice(monkeypatch)
