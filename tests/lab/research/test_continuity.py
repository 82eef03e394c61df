"""What neighbours change: sides are cut out of what was read with them, and differences are measured."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.g2p.vocab import encode
from kokoro_lab.lab.fixtures import load_texts
from kokoro_lab.lab.research import continuity
from kokoro_lab.lab.research.continuity import ALONE, ONE_PASS, OTHERS, PEERS, TWICE, Border, BorderReader
from kokoro_lab.model.prosody import Contours
from kokoro_lab.text.segment import MAX_TOKENS
from tests.tiny_voice import voice

SPACE = encode(" ")[0]


def contours(ids: Any, style: Any, speed: float) -> Contours:
    """Each id lasts two frames and has a pitch of its own; all are the higher, the more is read at once."""
    all_ids = np.array([0, *ids, 0])
    f0_hz = np.repeat(100.0 + all_ids + len(ids) / 10, 4)[None].astype(np.float32)
    energy = np.repeat(np.where((all_ids == 0) | (all_ids == SPACE), -9.0, 1.0), 4)[None].astype(np.float32)
    return Contours(
        np.zeros((1, 512, len(all_ids) * 2), np.float32),
        f0_hz,
        energy,
        np.full(len(all_ids), 2.0, np.float32),
    )


def behind(made: Contours, style: Any) -> Contours:
    return made


def whole(made: Contours) -> Any:
    """A tone as loud as the energy says."""
    at = np.arange(made.aligned.shape[2] * 600) / 24_000
    loud = np.repeat(made.energy.reshape(-1) > 0, 300)
    return (0.3 * loud * np.sin(2 * np.pi * 220 * at)).astype(np.float32)


@pytest.fixture
def reader() -> BorderReader:
    found = object.__new__(BorderReader)
    found.decoder = cast(
        Any,
        SimpleNamespace(
            prosody=SimpleNamespace(contours=contours, behind=behind),
            vocoder=SimpleNamespace(whole=whole),
            windows=lambda made, style: iter([whole(made)]),
        ),
    )
    return found


def borders(count: int = 4) -> list[Border]:
    ids = list(range(50, 50 + 2 * 20))
    return [
        Border(f"text-{n}", tuple(ids[:20]), tuple(ids[20 : 40 - n]), 0.15, voice("hum"))
        for n in range(count)
    ]


def test_borders_are_of_neighbours_that_one_pass_can_hold() -> None:
    texts = [text for text in load_texts() if text.id in ("exclamation", "greeting", "prose_weather")]
    found = continuity.borders_of(texts, ["af_heart", "bm_george"], 2)
    assert [border.text for border in found] == ["exclamation", "prose_weather", "prose_weather"]
    assert {border.text: border.voice.name for border in found}["prose_weather"] == "af_heart"
    assert all(len(b.before) + 1 + len(b.after) <= MAX_TOKENS for b in found)
    assert found[1].before != found[2].before


@pytest.mark.parametrize("way", [ALONE, "10 ids", PEERS, ONE_PASS, OTHERS])
def test_a_side_is_its_own_ids_whatever_is_seen_beside_it(reader: BorderReader, way: str) -> None:
    border, other = borders(2)
    read = len(border.before) + (
        0 if way == ALONE else 1 + min(continuity.SEEN.get(way, 60), 19 if way == OTHERS else 20)
    )
    for side, ids in zip(reader.sides(border, way, other), (border.before, border.after), strict=True):
        assert len(side.frames) == len(ids)
        np.testing.assert_allclose(
            side.f0_hz[::4] - np.array(ids) - 100, side.f0_hz[0] - ids[0] - 100, atol=1e-4
        )
    first = reader.sides(border, way, other)[0]
    assert first.f0_hz[0] - border.before[0] - 100 == pytest.approx(read / 10, abs=1e-3)


def test_texts_are_fixtures_and_answers() -> None:
    found = {text.id: text.text for text in continuity.all_texts()}
    assert found["answer-02"].startswith(
        "Yes. The train to the coast leaves every hour from platform four. If"
    )
    assert "greeting" in found


def test_marks_at_a_border_are_no_part_of_what_is_compared() -> None:
    (border,) = borders(1)
    stop, quote = encode(".")[0], encode("“")[0]
    marked = replace(border, before=(*border.before, stop), after=(quote, *border.after))
    assert marked.zones == (slice(5, 20), slice(1, 16))
    assert (border.kind, marked.kind) == ("within a sentence", "sentence")


def test_a_reading_is_no_distance_from_itself_and_its_faults_are_as_large_as_they_are(
    reader: BorderReader,
) -> None:
    (border,) = borders(1)
    sides = reader.sides(border, ONE_PASS, border)
    assert set(continuity.distance(border, sides, sides).values()) == {0.0}
    higher = tuple(replace(side, f0_hz=side.f0_hz * 2 ** (1 / 12)) for side in sides)
    slower = tuple(continuity._slower(side) for side in sides)
    louder = tuple(replace(side, energy=side.energy + 2) for side in sides)
    assert continuity.distance(border, sides, cast(Any, higher))["f0_cents"] == pytest.approx(100, abs=0.01)
    tempo = continuity.distance(border, sides, cast(Any, slower))
    assert tempo["tempo_percent"] == pytest.approx(100 * np.log(1.5))
    assert tempo["f0_cents"] == 0
    assert continuity.distance(border, sides, cast(Any, louder))["level_lu"] == pytest.approx(3, abs=1e-5)


def test_the_pause_of_one_pass_is_what_is_quiet_around_the_border(reader: BorderReader) -> None:
    (border,) = borders(1)
    made, ours = continuity.pause_s(border, reader.read(border, (), border.before, border.after))
    assert made == pytest.approx(4 * 0.0125 + 0.015)
    assert ours == pytest.approx(0.05 + 0.15 + 0.03)


def test_the_whole_way_from_borders_to_a_verdict(reader: BorderReader) -> None:
    found = borders()
    table = continuity.read_all(reader, found)
    assert continuity.estimates(table, TWICE)["f0_cents"].value == 0
    assert (
        continuity.estimates(table, ALONE)["f0_cents"].value
        > continuity.estimates(table, "10 ids")["f0_cents"].value
    )
    assert set(continuity.by_way(table).index) == {*continuity.SEEN, OTHERS, TWICE}

    def ear(samples: Any, rate_hz: int) -> float:
        """Likes what has no noise, and what lasts."""
        return float(len(samples) / rate_hz - 100 * np.abs(np.diff(samples, 4)).min())

    heard = continuity.listened(reader, found, ear)
    trials = continuity.timed(reader, found, 2)
    cost = continuity.costs(trials)
    caught = {control.name: control.caught for control in continuity.faults(reader, found, heard)}
    assert caught["three semitones higher"]
    assert caught["a fifth slower"]
    assert caught["2 LU louder"]
    checks = {check.name: check for check in continuity.checks_of(table, heard)}
    assert checks["again_f0_cents"].passed
    assert "times the computing" in continuity.verdict(table, heard, cost)
    assert continuity.figures_of(table, heard, cost)["borders_count"] == 4
    assert list(continuity.cost_ratios(cost).columns) == ["ratio", "low", "high"]
    assert set(continuity.by_text(table).way) == {ALONE, PEERS, OTHERS, ONE_PASS}
    assert ("within a sentence", ONE_PASS) in continuity.gains(heard).index


@pytest.mark.parametrize(("gain", "passes"), [(0.2, False), (-0.1, True)])
def test_what_the_ear_likes_better_fails(gain: float, passes: bool) -> None:
    rows = [
        {
            "text": f"{n}",
            "way": way,
            "kind": "sentence",
            "dnsmos": 3.0,
            "dnsmos_gain": gain + 0.01 * n if way == ONE_PASS else 0.0,
        }
        for n in range(6)
        for way in (ALONE, ONE_PASS)
    ]
    zeros = [
        {"text": f"{n}", "border": n, "way": TWICE, **dict.fromkeys(continuity.NOTICED, 0.0)}
        for n in range(6)
    ]
    found = continuity.checks_of(pd.DataFrame(zeros), pd.DataFrame(rows))
    assert found[-1].passed is passes
