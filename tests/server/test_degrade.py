"""Objectives are warned of with their remedy, and modes come and go with what caused them."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from kokoro_lab.config import Settings
from kokoro_lab.server.health.degrade import HOLD_S, MODES, RULES, Degrader, table
from kokoro_lab.server.health.objectives import ENOUGH, RECENT_S, ObjectiveWatch, ServedRequest
from kokoro_lab.server.requests.slots import Slots

GOOD = ServedRequest("completed", ttfa_s=0.1, rtf=0.2, needed_s=0.0)
LATE = ServedRequest("completed", ttfa_s=0.9, rtf=0.2, needed_s=0.0)
HEAVY = ServedRequest("completed", ttfa_s=0.1, rtf=0.8, needed_s=0.0)
DRY = ServedRequest("completed", ttfa_s=0.1, rtf=0.2, underruns=3, needed_s=0.33)
FAILED = ServedRequest("failed")


class Scene:
    """A degrader and a clock that stands still until it is moved."""

    def __init__(self, **settings: object) -> None:
        self.now_s = 1000.0
        self.slots = Slots(4)
        self.objectives = ObjectiveWatch(0.5, 0.6, lambda name, _: f"Mend {name}.", lambda: self.now_s)
        self.degrader = Degrader(
            Settings(**settings),  # type: ignore[arg-type]
            self.slots,
            self.objectives,
            lambda: self.now_s,
        )

    def serve(self, *served: ServedRequest) -> str:
        for one in served:
            self.objectives.note(one)
        return self.degrader.mode.name


def test_all_is_well_until_something_is_amiss() -> None:
    scene = Scene()
    assert scene.serve(*[GOOD] * 30) == "normal"
    assert scene.objectives.warnings() == []
    assert scene.degrader.figures()["because"] == "nothing is amiss"
    assert (scene.degrader.profile().chunk_s, scene.slots.limit) == (0.050, 4)


def test_chunks_are_the_engines_unless_a_profile_is_named() -> None:
    slots, objectives = Slots(4), ObjectiveWatch(0.5, 0.6, lambda name, _: "", lambda: 0.0)
    own = Degrader(Settings(), slots, objectives, chunk_s=0.080).profile()
    assert (own.name, own.chunk_s, own.pre_buffer_s) == ("stable", 0.080, 0.150)
    named = Degrader(Settings(buffer_profile="stable"), slots, objectives, chunk_s=0.080).profile()
    assert named.chunk_s == 0.050


def test_few_requests_are_no_percentile() -> None:
    scene = Scene()
    assert scene.serve(*[LATE] * (ENOUGH - 1)) == "normal"
    assert scene.serve(LATE) == "reduce-ttfa"


def test_a_missed_objective_is_warned_of_once_with_its_remedy(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(degrade="off")
    with caplog.at_level(logging.INFO, "kokoro_lab"):
        scene.serve(*[LATE] * 20)
    (said,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert said == "ttfa_s p95 is 0.900 over the last 10, above 0.5. Mend ttfa_s."
    (warned,) = scene.objectives.figures()["warnings"]  # type: ignore[misc]
    assert (warned["objective"], warned["value"], warned["limit"]) == ("ttfa_s p95", 0.9, 0.5)
    with caplog.at_level(logging.INFO, "kokoro_lab"):
        scene.serve(*[GOOD] * 60)
    assert "ttfa_s p95 is within its limit again." in caplog.text


def test_late_first_audio_makes_chunks_shorter() -> None:
    scene = Scene()
    assert scene.serve(*[LATE] * 10) == "reduce-ttfa"
    assert scene.degrader.profile().chunk_s == 0.040
    assert scene.slots.limit == 4


def test_underruns_lengthen_chunks_and_hold_the_first_sound_back() -> None:
    scene = Scene()
    assert scene.serve(DRY) == "normal"
    assert scene.degrader.held_back_s == 0
    assert scene.serve(DRY) == "avoid-underrun"
    assert scene.degrader.profile().chunk_s == 0.100
    assert scene.degrader.held_back_s == pytest.approx(0.28)  # needed, and some spare, less what players hold
    figures = scene.degrader.figures()
    assert (figures["pre_buffer_ms"], figures["held_back_ms"]) == (150, 280)
    assert figures["because"] == "2 of the last 2 requests had chunks that came too late"


def test_the_first_sound_is_held_back_by_half_a_second_at_most_and_not_for_who_needs_little() -> None:
    scene = Scene(degrade="avoid-underrun")
    scene.serve(*[ServedRequest("completed", needed_s=9.0)] * 2)
    assert scene.degrader.held_back_s == 0.5
    scene.serve(*[ServedRequest("completed", needed_s=0.1)] * 10)
    assert scene.degrader.held_back_s == 0


def test_what_the_rehearsal_needed_is_held_back_until_ten_have_listened() -> None:
    scene = Scene()
    scene.degrader.rehearsed(0.33)
    assert scene.degrader.mode.name == "avoid-underrun"
    assert scene.degrader.held_back_s == pytest.approx(0.28)
    scene.serve(*[GOOD] * 9)
    assert scene.degrader.held_back_s == pytest.approx(0.28)
    scene.serve(GOOD)
    assert scene.degrader.held_back_s == 0
    scene.now_s += (
        RECENT_S + HOLD_S
    )  # after a night in which nobody listened, the next one is the first again
    assert scene.degrader.held_back_s == pytest.approx(0.28)


def test_a_rehearsal_without_late_chunks_changes_nothing() -> None:
    scene = Scene()
    scene.degrader.rehearsed(0.09)
    assert (scene.degrader.mode.name, scene.degrader.held_back_s) == ("normal", 0)


def test_a_mode_stays_while_there_would_be_gaps_without_it() -> None:
    # No underruns, since it was held back; in chunks of 50 ms it would have needed some 120 ms
    held = ServedRequest("completed", ttfa_s=0.1, rtf=0.2, needed_s=0.07, held_back_s=0.1)
    scene = Scene()
    scene.serve(DRY, DRY)
    for _ in range(3):
        scene.now_s += HOLD_S - 1
        assert scene.serve(*[GOOD] * 8, held, held) == "avoid-underrun"
    scene.now_s += HOLD_S
    assert scene.serve(*[GOOD] * 10) == "normal"


@pytest.mark.parametrize("trouble", [[FAILED] * 2, [ServedRequest("expired")] * 2, [HEAVY] * 10])
def test_failures_and_heavy_load_halve_what_runs_at_a_time(trouble: list[ServedRequest]) -> None:
    scene = Scene()
    assert scene.serve(*trouble) == "stability-first"
    assert scene.slots.limit == 2


def test_wrong_requests_and_clients_that_leave_are_no_trouble_of_ours() -> None:
    scene = Scene()
    assert (
        scene.serve(*[ServedRequest("invalid"), ServedRequest("cancelled"), ServedRequest("rejected")] * 10)
        == "normal"
    )


def test_a_heavier_mode_comes_at_once_and_a_lighter_one_after_a_while() -> None:
    scene = Scene()
    scene.serve(DRY, DRY)
    assert scene.serve(FAILED, FAILED) == "stability-first"
    assert scene.serve(*[GOOD] * 60) == "stability-first"
    scene.now_s += HOLD_S
    assert scene.degrader.mode.name == "normal"
    assert scene.slots.limit == 4


def test_a_mode_is_held_from_the_last_sign_of_its_trouble() -> None:
    scene = Scene()
    scene.serve(DRY, DRY)
    scene.now_s += HOLD_S - 1
    assert scene.serve(DRY, DRY) == "avoid-underrun"
    scene.now_s += HOLD_S - 1
    assert scene.serve(*[GOOD] * 10) == "avoid-underrun"
    assert scene.degrader.figures()["lighter_after_s"] == 1.0
    scene.now_s += 1
    assert scene.degrader.mode.name == "normal"
    assert scene.degrader.figures()["lighter_after_s"] is None


def test_trouble_that_comes_and_goes_does_not_switch_the_mode_to_and_fro(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    with caplog.at_level(logging.INFO, "kokoro_lab.server.health.degrade"):
        for _ in range(20):
            assert scene.serve(DRY, DRY) == "avoid-underrun"
            scene.now_s += 0.7 * HOLD_S
            assert scene.serve(*[GOOD] * 10) == "avoid-underrun"
    assert len([r for r in caplog.records if "Degrade mode is now" in r.getMessage()]) == 1


def test_a_lighter_trouble_that_remains_has_its_own_mode_after_the_heavier_one() -> None:
    scene = Scene()
    assert scene.serve(FAILED, FAILED) == "stability-first"
    scene.now_s += HOLD_S / 2
    assert scene.serve(*[GOOD] * 8, DRY, DRY) == "stability-first"
    scene.now_s += HOLD_S
    assert scene.degrader.mode.name == "avoid-underrun"
    assert scene.slots.limit == 4


def test_every_mode_has_what_brings_it_what_it_changes_and_a_way_back() -> None:
    assert {rule.mode.name for rule in RULES} == set(MODES) - {"normal"}
    severity = [list(MODES).index(rule.mode.name) for rule in RULES]
    assert severity == sorted(severity, reverse=True)
    assert all(all(row.values()) for row in table())
    assert Scene().degrader.figures()["table"] == table()


def test_the_page_on_serving_has_the_table(repository: Path) -> None:
    text = (repository / "docs/serve.md").read_text()
    for row in table():
        said = (
            row["trigger"]
            .replace("KOKORO_", "`KOKORO_")
            .replace("_RTF", "_RTF`")
            .replace("TTFA_S", "TTFA_S`")
        )
        assert re.search(rf"^\| `{row['mode']}` \|.*{re.escape(said)}", text, re.MULTILINE), row


def test_what_is_long_ago_is_forgotten() -> None:
    scene = Scene()
    scene.serve(FAILED, FAILED)
    scene.now_s += RECENT_S + 1
    assert scene.degrader.mode.name == "normal"


def test_a_mode_may_be_set_or_switched_off() -> None:
    scene = Scene(degrade="stability-first")
    assert scene.serve(*[GOOD] * 30) == "stability-first"
    assert scene.degrader.figures()["because"] == "KOKORO_DEGRADE says so"
    assert Scene(degrade="off").serve(*[FAILED] * 30) == "normal"


def test_every_mode_but_the_normal_one_says_what_it_changes() -> None:
    assert [m.name for m in MODES.values() if m.changes == "nothing"] == ["normal"]


def test_a_reset_forgets_what_was_amiss() -> None:
    scene = Scene()
    scene.serve(FAILED, FAILED)
    scene.degrader.reset()
    assert scene.degrader.mode.name == "normal"
    assert scene.objectives.recent() == []
