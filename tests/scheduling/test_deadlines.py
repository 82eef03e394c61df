"""Who computes next: what is needed soonest, each client by turns, and nobody never."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kokoro_lab.errors import Interrupted
from kokoro_lab.scheduling.deadlines import (
    FIRST_UNITS,
    GUARD_S,
    KEPT_S,
    LEISURE_S,
    PATIENCE_S,
    SHARE_S,
    SHORT_S,
    UNIT_S,
    YIELDS_S,
    Claim,
    Cores,
    Unit,
)
from tests.scheduling.crowd import Pedal, is_held

BLOCK_S = 5


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Scene:
    """Cores on a clock of their own, and a unit at work in front of those that are asked for."""

    def __init__(self, at_a_time: int = 1) -> None:
        self.clock = Clock()
        self.cores = Cores(at_a_time, self.clock)
        self.first = self.cores.ask(self.claim("another", in_hand_s=1))

    def claim(self, client: str = "a", *, in_hand_s: float | None = None, listened: bool = True) -> Claim:
        claim = self.cores.claim(client, threading.Event(), listened=listened)
        if in_hand_s is not None:
            claim.gave(in_hand_s)
        return claim

    def order(self, units: dict[str, Unit]) -> list[str]:
        """The names of units, as they come to compute one after the other."""
        self.cores.give_back(self.first)
        left, found = dict(units), []
        while left:
            at_work = [name for name, unit in left.items() if unit.granted.is_set()]
            assert len(at_work) == 1
            found += at_work
            unit = left.pop(at_work[0])
            self.cores.give_back(unit)
            unit.claim.leave()
        return found


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_alone_nobody_waits() -> None:
    cores = Cores()
    claim = cores.claim("a", threading.Event(), listened=True)
    for _ in range(3):
        with claim.computing():
            claim.gave(1.0)
    assert claim.waited_s < 0.1
    assert cores.figures()["waiting"] == cores.figures()["computing"] == 0


def test_who_would_first_run_out_of_speech_computes_first(scene: Scene) -> None:
    claims = {f"{lead_s}": scene.claim(in_hand_s=lead_s) for lead_s in (3.0, 0.5, 1.0)}
    assert scene.order({name: scene.cores.ask(claim) for name, claim in claims.items()}) == [
        "0.5",
        "1.0",
        "3.0",
    ]


def test_the_first_sound_comes_before_what_is_in_hand_but_not_before_a_gap(scene: Scene) -> None:
    short, long = scene.claim(in_hand_s=GUARD_S / 2), scene.claim(in_hand_s=GUARD_S * 2)
    asked = {name: scene.cores.ask(claim) for name, claim in (("long", long), ("short", short))}
    assert scene.order({**asked, "new": scene.cores.ask(scene.claim())}) == ["short", "new", "long"]


@pytest.mark.parametrize(("others", "first"), [(1, "new"), (2, "new"), (3, "0")])
def test_the_first_sound_does_not_come_before_a_crowd_that_would_run_out_together(
    scene: Scene, others: int, first: str
) -> None:
    in_hand_s = 2.5 * SHARE_S
    asked = {
        str(number): scene.cores.ask(scene.claim(str(number), in_hand_s=in_hand_s + number / 1000))
        for number in range(others)
    }
    assert scene.order({**asked, "new": scene.cores.ask(scene.claim())})[0] == first


def test_a_stream_with_much_in_hand_lets_files_go_first(scene: Scene) -> None:
    file, rich, poor = scene.claim(listened=False), scene.claim(in_hand_s=9), scene.claim(in_hand_s=4)
    units = {"rich": scene.cores.ask(rich), "file": scene.cores.ask(file), "poor": scene.cores.ask(poor)}
    assert scene.order(units) == ["poor", "file", "rich"]


def test_clients_come_by_turns_however_many_requests_one_has(scene: Scene) -> None:
    units = {f"a{number}": scene.cores.ask(scene.claim("a")) for number in range(3)}
    units |= {f"b{number}": scene.cores.ask(scene.claim("b")) for number in range(2)}
    assert scene.order(units) == ["a0", "b0", "a1", "b1", "a2"]


def test_what_is_first_heard_is_computed_without_a_window_of_others_in_between(scene: Scene) -> None:
    new, other = scene.claim("a"), scene.claim("b", in_hand_s=0.1)
    prosody = scene.cores.ask(new)
    scene.cores.give_back(scene.first)
    waiting = scene.cores.ask(other)
    scene.cores.give_back(prosody)
    assert not waiting.granted.is_set()
    window = scene.cores.ask(new)
    assert window.granted.is_set()
    scene.cores.give_back(window)
    new.gave(SHORT_S / 2)
    assert not waiting.granted.is_set()
    new.gave(SHORT_S)
    assert waiting.granted.is_set()


def test_the_cores_are_not_kept_for_one_that_leaves_or_asks_no_more(scene: Scene) -> None:
    scene.cores.give_back(scene.first)
    new, other = scene.claim(), scene.claim(in_hand_s=1)
    scene.cores.give_back(scene.cores.ask(new))
    waiting = scene.cores.ask(other)
    assert not waiting.granted.is_set()
    new.leave()
    assert waiting.granted.is_set()
    scene.cores.give_back(waiting)
    mute = scene.claim()
    scene.cores.give_back(scene.cores.ask(mute))
    waiting = scene.cores.ask(other)
    assert not waiting.granted.is_set()
    scene.clock.now_s += KEPT_S
    thread = threading.Thread(target=scene.cores.wait_for, args=(waiting,), daemon=True)
    thread.start()
    thread.join(BLOCK_S)
    assert waiting.granted.is_set()


def test_a_stream_that_is_always_short_of_speech_keeps_the_cores_no_longer(scene: Scene) -> None:
    scene.cores.give_back(scene.first)
    slow, other = scene.claim(), scene.claim(in_hand_s=1)
    for _ in range(FIRST_UNITS):
        scene.cores.give_back(scene.cores.ask(slow))
    waiting = scene.cores.ask(other)
    assert not waiting.granted.is_set()
    window = scene.cores.ask(slow)
    scene.cores.give_back(window)
    assert waiting.granted.is_set()


def test_for_a_file_the_cores_are_not_kept(scene: Scene) -> None:
    file, other = scene.cores.ask(scene.claim(listened=False)), scene.cores.ask(scene.claim(in_hand_s=1))
    scene.cores.give_back(scene.first)
    scene.cores.give_back(other)
    assert file.granted.is_set()
    waiting = scene.cores.ask(scene.claim(in_hand_s=1))
    scene.cores.give_back(file)
    assert waiting.granted.is_set()


def test_of_those_who_have_run_out_clients_come_by_turns(scene: Scene) -> None:
    claims = {f"a{number}": scene.claim("a", in_hand_s=0.1 * number) for number in range(3)}
    claims["b"] = scene.claim("b", in_hand_s=0.4)
    for claim in claims.values():
        claim.begun = 1
    scene.cores.give_back(scene.first)
    scene.clock.now_s += 1
    scene.first = scene.cores.ask(scene.claim("another", in_hand_s=1))
    units = {name: scene.cores.ask(claim) for name, claim in claims.items()}
    assert scene.order(units) == ["a0", "b", "a1", "a2"]


def test_nobody_waits_for_the_end_of_a_whole_segment_but_another_whole(scene: Scene) -> None:
    scene.cores.give_back(scene.first)
    whole = scene.cores.ask(scene.claim(listened=False), whole=True)
    other = scene.cores.ask(scene.claim(listened=False), whole=True)
    window = scene.cores.ask(scene.claim(in_hand_s=1))
    assert [unit.granted.is_set() for unit in (whole, other, window)] == [True, False, True]
    scene.cores.give_back(whole)
    assert not other.granted.is_set()
    scene.cores.give_back(window)
    assert other.granted.is_set()


def test_the_next_segment_is_prepared_beside_its_own_window_while_nobody_else_waits(scene: Scene) -> None:
    scene.cores.give_back(scene.first)
    claim = scene.claim(in_hand_s=1)
    window, ahead = scene.cores.ask(claim), scene.cores.ask(claim)
    assert ahead.granted.is_set()
    scene.cores.give_back(ahead)
    other = scene.cores.ask(scene.claim())
    ahead = scene.cores.ask(claim)
    assert not ahead.granted.is_set()
    scene.cores.give_back(window)
    assert other.granted.is_set()


def test_a_unit_that_does_not_end_holds_nobody_up_for_ever(scene: Scene) -> None:
    unit = scene.cores.ask(scene.claim())
    scene.clock.now_s += UNIT_S
    thread = threading.Thread(target=scene.cores.wait_for, args=(unit,), daemon=True)
    thread.start()
    thread.join(BLOCK_S)
    assert unit.granted.is_set()


def test_as_many_at_a_time_as_fit_into_the_cores() -> None:
    scene = Scene(at_a_time=2)
    second, third = scene.cores.ask(scene.claim()), scene.cores.ask(scene.claim())
    assert second.granted.is_set()
    assert not third.granted.is_set()


def test_who_leaves_while_it_waits_is_let_go_at_once_and_computes_nothing(scene: Scene) -> None:
    claim, told = scene.claim(), threading.Event()
    first = scene.claim()
    waiting = scene.cores.ask(first)
    first.leave()
    assert waiting.granted.is_set()
    scene.cores.give_back(waiting)

    def wait() -> None:
        with pytest.raises(Interrupted), claim.computing():
            raise AssertionError("it computes")
        told.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not scene.cores.figures()["waiting"]:
        pass
    claim.leave()
    assert told.wait(BLOCK_S)
    thread.join()
    assert scene.cores.figures()["waiting"] == 0


def test_one_that_fails_gives_the_cores_back(scene: Scene) -> None:
    scene.cores.give_back(scene.first)
    claim = scene.claim()
    with pytest.raises(ValueError, match="broken"), claim.computing():
        raise ValueError("broken")
    other = scene.cores.ask(scene.claim(in_hand_s=1))
    assert other.granted.is_set()
    scene.cores.give_back(other)
    with claim.computing():
        pass  # what is heard before the segment that failed is still computed


def test_a_clock_stands_still_while_there_is_nothing_to_hear_or_nobody_takes_it(scene: Scene) -> None:
    claim = scene.claim(in_hand_s=1)
    scene.clock.now_s += 3
    claim.gave(0.5)
    assert claim.lead_s == pytest.approx(0.5)
    scene.clock.now_s += 7
    claim.held_up(7)
    assert claim.lead_s == pytest.approx(0.5)


@pytest.mark.parametrize("burst", [1, 9])
def test_a_listener_in_real_time_has_no_more_in_hand_than_fits_between_and_comes_before_one_that_hoards(
    scene: Scene, burst: int
) -> None:
    scene.cores.give_back(scene.first)
    paced, hoards = scene.claim(in_hand_s=2), scene.claim()
    for _ in range(600 // burst):  # a minute: a socket has room for a few chunks once they were heard
        scene.clock.now_s += 0.1 * burst
        paced.held_up(0.1 * burst)
        for _ in range(burst):
            paced.gave(0.1)
            paced.held_up(0.0)
    assert paced.lead_s == pytest.approx(2)
    hoards.gave(10)
    scene.first = scene.cores.ask(scene.claim("another", in_hand_s=1))
    order = scene.order({"hoards": scene.cores.ask(hoards), "paced": scene.cores.ask(paced)})
    assert order == ["paced", "hoards"]


def test_a_pause_of_the_listener_takes_nothing_out_of_its_hand(scene: Scene) -> None:
    claim = scene.claim(in_hand_s=2)
    scene.clock.now_s += 7
    claim.held_up(7)
    claim.gave(0.1)
    assert claim.lead_s == pytest.approx(2)
    # What was left of the pause is not taken off the speech of one that had to wait for computing since
    scene.clock.now_s += 5
    claim.gave(0.5)
    assert claim.lead_s == pytest.approx(0.5)


def test_who_takes_faster_than_it_hears_has_more_in_hand(scene: Scene) -> None:
    claim = scene.claim(in_hand_s=2)
    for _ in range(10):
        scene.clock.now_s += 0.05
        claim.held_up(0.05)
        claim.gave(0.1)
    assert claim.lead_s == pytest.approx(2.5)


def test_the_figures_know_how_long_listeners_waited_and_how_busy_the_cores_are(scene: Scene) -> None:
    claim = scene.claim()
    unit, file = scene.cores.ask(claim), scene.cores.ask(scene.claim(listened=False))
    scene.clock.now_s += 3
    scene.first.claim.gave(9)
    scene.cores.give_back(scene.first)
    unit.claim.gave(9)
    for each in (unit, file):
        scene.cores.give_back(each)
    scene.clock.now_s += 9
    figures = scene.cores.figures()
    assert (figures["waits_s"], claim.waited_s) == ([0.0, 3.0], 3.0)
    assert figures["utilisation"] == 0.25


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_never_two_at_once_and_nobody_waits_for_ever(data: st.DataObject) -> None:
    clock = Clock()
    cores = Cores(1, clock)
    claims: list[Claim] = []
    waiting: dict[Unit, tuple[Claim, int]] = {}
    computed: Counter[str] = Counter()
    for step in range(data.draw(st.integers(1, 120))):
        if not claims or data.draw(st.booleans()):
            client = data.draw(st.sampled_from("abc"))
            listened = data.draw(st.booleans())
            claims.append(cores.claim(client, threading.Event(), listened=listened))
        for claim in data.draw(st.lists(st.sampled_from(claims), min_size=1, max_size=3)):
            if not any(other is claim for other, _ in waiting.values()):
                waiting[cores.ask(claim)] = claim, step
        clock.now_s += data.draw(st.floats(0.0, 0.2))
        at_work = [unit for unit in waiting if unit.granted.is_set()]
        assert len(at_work) == 1
        ended, _ = waiting.pop(at_work[0])
        computed[ended.client] += 1
        leaves = data.draw(st.sampled_from([*[None] * 4, *(claim for claim, _ in waiting.values())]))
        ended.gave(data.draw(st.floats(0.0, 3.0)))
        cores.give_back(at_work[0])
        clock.now_s += KEPT_S
        cores.grant()
        if leaves is not None:
            leaves.leave()
            claims.remove(leaves)
            for unit in [unit for unit, (claim, _) in waiting.items() if claim is leaves]:
                assert unit.granted.is_set()
                cores.give_back(unit)
                del waiting[unit]
    # However many come meanwhile, each of those who wait comes to compute
    left, rounds = set(waiting), 0
    while left:
        rounds += 1
        newcomer = cores.claim(f"new {rounds}", threading.Event(), listened=True)
        waiting[cores.ask(newcomer)] = newcomer, rounds
        clock.now_s += 0.1
        (unit,) = [unit for unit in waiting if unit.granted.is_set()]
        claim, _ = waiting.pop(unit)
        claim.gave(0.1)
        left.discard(unit)
        cores.give_back(unit)
        clock.now_s += KEPT_S
        cores.grant()
        assert rounds < 20 * (LEISURE_S + PATIENCE_S + len(claims) * 3)


class BrakedScene(Scene):
    """The same, with brakes."""

    def __init__(self, in_hand_s: float | None = YIELDS_S * 2, *, whole: bool = False) -> None:
        self.clock = Clock()
        self.cores = Cores(1, self.clock, Pedal)
        self.first = self.asks(in_hand_s, whole=whole, listened=not whole)

    def asks(self, in_hand_s: float | None = None, *, whole: bool = False, listened: bool = True) -> Unit:
        return self.cores.ask(self.claim(in_hand_s=in_hand_s, listened=listened), whole=whole)

    def ends(self, unit: Unit) -> None:
        """`unit` ends, and gives its listener enough."""
        unit.claim.gave(SHORT_S)
        self.cores.give_back(unit)


@pytest.mark.parametrize("in_hand_s", [None, SHORT_S / 2])
@pytest.mark.parametrize("whole", [False, True])
def test_a_unit_that_nobody_misses_is_held_for_a_listener_who_hears_nothing(
    in_hand_s: float | None, whole: bool
) -> None:
    scene = BrakedScene(whole=whole)
    new = scene.asks(in_hand_s)
    assert new.granted.is_set()
    assert is_held(scene.first)
    assert scene.cores.figures()["waiting"] == scene.cores.figures()["computing"] == 1
    scene.clock.now_s += 0.05
    scene.ends(new)
    assert not is_held(scene.first)
    assert scene.first.held_s == scene.first.claim.waited_s == pytest.approx(0.05)
    scene.cores.give_back(scene.first)
    assert scene.cores.figures()["waiting"] == scene.cores.figures()["computing"] == 0


def test_a_unit_is_held_for_nobody_who_can_wait_and_not_if_it_is_needed_soon_itself() -> None:
    enough = BrakedScene()
    assert not enough.asks(SHORT_S * 2).granted.is_set()
    assert not enough.asks(listened=False).granted.is_set()
    assert not is_held(enough.first)
    for in_hand_s in (None, (GUARD_S + YIELDS_S) / 2):
        needed = BrakedScene(in_hand_s)
        assert not needed.asks().granted.is_set()
        assert not is_held(needed.first)


def test_a_stream_holds_no_unit_of_its_own() -> None:
    scene = BrakedScene(whole=True)
    scene.first.claim.listened = True
    scene.cores.ask(scene.first.claim)
    assert not is_held(scene.first)


def test_a_window_and_the_next_segment_of_its_stream_are_held_together() -> None:
    scene = BrakedScene()
    ahead = scene.cores.ask(scene.first.claim)
    assert ahead.granted.is_set()
    new = scene.asks()
    assert new.granted.is_set()
    assert is_held(scene.first)
    assert is_held(ahead)
    scene.ends(new)
    assert not is_held(scene.first)
    assert not is_held(ahead)


def test_the_units_of_one_stream_are_held_at_a_time() -> None:
    scene = BrakedScene()
    second = scene.asks()
    second.claim.gave(YIELDS_S * 2)
    third = scene.asks()
    assert is_held(scene.first)
    assert not is_held(second)
    assert not third.granted.is_set()
    scene.cores.give_back(second)
    assert third.granted.is_set()


def test_between_two_units_of_a_new_stream_what_is_held_stays_held_and_no_other_unit_begins() -> None:
    scene = BrakedScene()
    prosody = scene.asks()
    others = [scene.asks(in_hand_s) for in_hand_s in (None, SHORT_S / 2, GUARD_S, YIELDS_S * 2)]
    scene.cores.give_back(prosody)
    assert is_held(scene.first)
    assert not any(other.granted.is_set() for other in others)
    window = scene.cores.ask(prosody.claim)
    assert window.granted.is_set()
    scene.ends(window)
    assert [other.granted.is_set() for other in others] == [False, True, False, False]


def test_a_held_unit_goes_on_when_its_stream_ends_and_may_end_while_it_is_held() -> None:
    scene = BrakedScene()
    new = scene.asks()
    scene.first.claim.leave()
    assert not is_held(scene.first)
    scene.cores.give_back(scene.first)
    scene.cores.give_back(new)
    again = BrakedScene()
    new = again.asks()
    again.cores.give_back(again.first)
    assert new.granted.is_set()
    again.cores.give_back(new)
    assert again.cores.figures()["waiting"] == again.cores.figures()["computing"] == 0


def test_the_brake_is_on_while_a_unit_computes_and_the_stream_hears_how_long_it_was_held() -> None:
    scene, stood_s = BrakedScene(), []
    scene.cores.give_back(scene.first)
    claim = scene.cores.claim("a", threading.Event(), listened=True, stood_still=stood_s.append)
    claim.gave(YIELDS_S * 2)
    with claim.computing():
        (unit,) = scene.cores._at_work
        assert isinstance(unit.brake, Pedal)
        assert unit.brake.on
        new = scene.asks()
        scene.clock.now_s += 0.25
        scene.ends(new)
    assert not unit.brake.on
    assert stood_s == [pytest.approx(0.25)]
