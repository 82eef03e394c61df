"""A number on a page is the one in the code."""

from __future__ import annotations

import pytest

from kokoro_lab.config import PUBLISHED, Settings
from kokoro_lab.engine_config import CHUNK_MAX_MS, CHUNK_MIN_MS, EngineConfig
from kokoro_lab.scheduling import deadlines
from kokoro_lab.server.health import background, degrade, figures, lifecycle, objectives
from kokoro_lab.server.http import conversation
from kokoro_lab.server.http.elevenlabs import ConnectionQuery
from kokoro_lab.text import sentences
from kokoro_lab.weights import store
from tests.documentation import page

GOODBYE_S = lifecycle.GOODBYE_S
TURN_S = Settings.model_fields["first_audio_deadline_s"].default
SILENCE = ConnectionQuery.model_json_schema()["properties"]["inactivity_timeout"]
SAID = [
    ("clients", f"nothing is spoken for {conversation.IDLE_S:g} s"),
    ("clients", f"it is {SILENCE['default']} s, or their `inactivity_timeout` ({SILENCE['minimum']} "),
    ("clients", f"to {SILENCE['maximum']}). The client sends"),
    ("configuration", f"after SIGTERM, less {GOODBYE_S:g} s (half of it below {2 * GOODBYE_S:g} s)"),
    ("events", f"A chunk lasts {EngineConfig().chunk_ms} ms"),
    ("events", f"(`chunk_ms`, {CHUNK_MIN_MS} to {CHUNK_MAX_MS})"),
    ("live", f"{sentences.LOOK_CHARS} characters after the end, or {sentences.QUOTE_CHARS} in a quotation"),
    ("live", f"it may wait for some {sentences.SENTENCE_CHARS}"),
    ("live", f"no text comes for {conversation.IDLE_S:g} s (with ElevenLabs' protocol "),
    ("live", f"protocol {SILENCE['default']} s, or `inactivity_timeout`)"),
    ("serve", f"Streams under way may continue until {GOODBYE_S:g} s before the end"),
    ("serve", f"(for half of it if it is below {2 * GOODBYE_S:g} s)"),
    ("serve", f"`Retry-After: {lifecycle.LOADED_AFTER_S}`"),
    ("serve", f"real-time factor (the last {figures.WINDOW} requests)"),
    ("serve", f"of the last {objectives.RECENT} requests; it counts from {objectives.ENOUGH} requests on"),
    ("serve", f"more than {objectives.RECENT_S / 60:g} minutes ago count nowhere"),
    ("serve", f"holds the first sound of a stream back, by at most {degrade.HELD_BACK_MOST_S:g} s"),
    ("serve", f"more than {background.SLOW:g} s of computing for a second of speech *rehearses*"),
    ("serve", f"After {deadlines.PATIENCE_S:g} s of waiting, a new listener"),
    ("serve", f"after {deadlines.LEISURE_S:g} s of waiting, a file"),
    ("serve", f"more than {deadlines.GUARD_S:g} s in hand, unless"),
    ("serve", f"(less than {deadlines.SHARE_S:g} s for each of them)"),
    ("service", f"until {GOODBYE_S:g} s before the end of `KOKORO_SHUTDOWN_S`"),
    ("troubleshooting", f"the request waits for it, at most {TURN_S:g} s"),
    ("troubleshooting", f"the request waited in it for {TURN_S:g} s"),
]
"""Pages of docs/, and what stands there."""


@pytest.mark.parametrize(("name", "said"), SAID)
def test_a_number_on_a_page_is_the_one_in_the_code(name: str, said: str) -> None:
    assert said in words_of(name)


def test_the_pages_know_how_much_is_fetched() -> None:
    one, every = (
        f"{sum(file.bytes for file in store.files_of(w)) / 1e6:.0f} MB" for w in (["fp32"], PUBLISHED)
    )
    assert f"takes the weights of all variants ({every})" in words_of("variants")
    assert all(one in words_of(name) for name in ("start", "troubleshooting", "service"))


def words_of(name: str) -> str:
    """A page of docs/ without its line breaks."""
    return " ".join(page(f"docs/{name}.md").split())
