"""A verdict on people: strict about few trials, few listeners, and answers far below chance."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kokoro_lab.lab.listening.result import ListeningResult

GUESSERS = {f"listener-{number}": (19 + number % 3, 40) for number in range(1, 6)}
SHOWN = "Inaudibility (below 0.70) is shown"


def of(**counts: tuple[int, int]) -> ListeningResult:
    return ListeningResult(counts, {})


def said(result: ListeningResult) -> str:
    return " ".join(result.sentences())


def test_five_listeners_who_hear_nothing_show_it() -> None:
    result = of(**GUESSERS)
    assert result.outcome == "inaudible"
    assert SHOWN in said(result)
    assert result.headline() == (
        "No difference is heard: 5 listeners were right in 101 of 200 trials, where guessing gives 100."
    )


@pytest.mark.parametrize("right", range(7))
def test_six_trials_never_show_it(right: int) -> None:
    result = of(ada=(right, 6))
    assert result.outcome != "inaudible"
    assert SHOWN not in said(result)


def test_too_few_trials_say_how_many_are_missing_and_no_limit() -> None:
    assert "Missing: 33 trials and 4 listeners." in said(of(ada=(1, 6)))
    assert "0.582" not in said(of(ada=(1, 6)))
    assert of(ada=(1, 6)).headline() == (
        "Nothing is shown yet: ada was right in 1 of 6 trials, where guessing gives 3."
    )


@pytest.mark.parametrize("seed", range(40))
def test_one_listener_who_guessed_shows_nothing_of_people(seed: int) -> None:
    right = int(np.random.default_rng(seed).binomial(40, 0.5))
    result = of(ada=(right, 40))
    assert result.outcome != "inaudible"
    assert SHOWN not in said(result)
    if result.outcome == "open":
        assert "4 listeners" in said(result)


def test_one_listener_in_trials_enough_speaks_for_one() -> None:
    assert of(ada=(21, 40)).headline() == (
        "No difference is heard by ada, and what others hear is open: ada was right in 21 of 40 trials, "
        "where guessing gives 20."
    )


@pytest.mark.parametrize("counts", [{"ada": (9, 40)}, GUESSERS | {"listener-3": (6, 40)}, {"ada": (0, 39)}])
def test_far_below_chance_is_odd_and_no_proof(counts: dict[str, tuple[int, int]]) -> None:
    result = of(**counts)
    assert result.outcome == "odd"
    assert result.headline().startswith("Odd, and no proof")
    assert SHOWN not in said(result)
    assert result.figures()["human_odd_listeners_count"] == 1
    (odd,) = result.odd_listeners
    table = result.table()
    assert table.outcome[table.listener == odd].item() == "odd"


def test_honest_guessers_are_seldom_odd() -> None:
    rights, counts = np.unique(np.random.default_rng(1).binomial(40, 0.5, 1000), return_counts=True)
    odd = [bool(of(ada=(int(right), 40)).odd_listeners) for right in rights]
    assert counts[odd].sum() <= 20  # 8 are expected


def test_a_difference_that_is_heard_is_said_first() -> None:
    assert of(ada=(35, 40)).outcome == "heard"
    assert of(ada=(35, 40)).headline().startswith("A difference is heard: ada was right in 35 of 40 trials")


def test_one_keen_ear_is_not_drowned() -> None:
    result = of(**GUESSERS | {"keen": (38, 40)})
    assert result.outcome == "heard"
    assert result.headline() == "A difference is heard by keen: the listeners do not hear alike."
    assert SHOWN not in said(result)


def test_an_odd_listener_does_not_hide_a_keen_one() -> None:
    result = of(**GUESSERS | {"listener-3": (3, 40), "keen": (38, 40)})
    assert result.outcome == "heard"
    assert result.headline().startswith("A difference is heard by keen")
    assert "Odd, and no proof: listener-3 was right" in said(result)


@pytest.mark.parametrize(
    ("counts", "mark"),
    [
        ({"ada": (35, 40)}, "✗</b> heard"),
        ({"ada": (20, 40)}, "✓</b> not heard"),
        ({"ada": (3, 6)}, "…</b> open"),
        ({"ada": (5, 40)}, "?</b> odd"),
        ({}, None),
    ],
)
def test_jupyter_shows_a_row_with_a_picture_in_the_colour_of_its_outcome(
    counts: dict[str, tuple[int, int]], mark: str | None
) -> None:
    html = of(**counts)._repr_html_()
    assert (mark or "Nobody has answered") in html
    assert html.count("<svg") == (2 if counts else 0)  # the scale, and the listener's
    assert "http" not in html
    if counts:
        assert re.search(r'aria-label="\d+% right, 95 % interval \d+% to \d+%"', html)
