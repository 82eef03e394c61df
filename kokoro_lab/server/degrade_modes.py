"""The degrade modes as a table: what brings each of them, what it changes, and when it goes.

A mode changes how speech is cut into chunks, how much a player is advised to hold back, how many are
served at a time and who computes first. It never changes a sample: the same request sounds the same. A
request that names its `chunk_ms` gets it in every mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kokoro_lab.playback.buffering import BENCHMARK, SAFE, BufferProfile
from kokoro_lab.server.objectives import MissedObjective, ServedRequest

LOOK_BACK = 10
"""Requests in which trouble is looked for."""
TROUBLED = 2
"""So many of them, and it is no accident."""
HOLD_S = 60.0
"""A mode is kept so long behind the last sign of its trouble: what it cures is otherwise back at once."""
WAY_BACK = f"{HOLD_S:.0f} s without what brings it"


@dataclass(frozen=True, slots=True)
class Mode:
    """What one mode changes.

    Parameters
    ----------
    name, changes : str
        As `/status` shows them.
    profile : BufferProfile or None
        Instead of the one in the settings.
    share : float
        Of the syntheses at a time.
    reserve_s : float or None
        A stream with more speech in hand than this lets those go first that have not begun to sound.
    learns_pre_buffer : bool
        Whether players are advised to hold back what the last streams needed.
    """

    name: str
    changes: str
    profile: BufferProfile | None = None
    share: float = 1.0
    reserve_s: float | None = None
    learns_pre_buffer: bool = False


NORMAL = Mode("normal", "nothing")
REDUCE_TTFA = Mode(
    "reduce-ttfa",
    "chunks of 40 ms; streams with more than 1 s in hand let those go first that have not begun to sound",
    profile=BENCHMARK,
    reserve_s=1.0,
)
AVOID_UNDERRUN = Mode(
    "avoid-underrun",
    "chunks of 100 ms; players are advised to hold back what the last streams needed",
    profile=SAFE,
    learns_pre_buffer=True,
)
STABILITY_FIRST = Mode(
    "stability-first",
    "chunks of 100 ms, longer pre-buffer, half as many syntheses at a time; others wait their turn",
    profile=SAFE,
    share=0.5,
    learns_pre_buffer=True,
)
MODES = {mode.name: mode for mode in (NORMAL, REDUCE_TTFA, AVOID_UNDERRUN, STABILITY_FIRST)}
"""From the lightest to the heaviest."""


@dataclass(frozen=True, slots=True)
class RecentService:
    """What the modes are chosen by: the last requests, and the objectives that are missed, by their names."""

    last: Sequence[ServedRequest]
    missed: Mapping[str, MissedObjective]


@dataclass(frozen=True, slots=True)
class ModeRule:
    """A row of the table.

    Parameters
    ----------
    mode : Mode
    trigger : str
        What brings it, in words.
    because : callable
        Given what is seen, why it is due now; None if it is not.
    way_back : str
        When it goes.
    """

    mode: Mode
    trigger: str
    because: Callable[[RecentService], str | None]
    way_back: str = WAY_BACK


def _failing(seen: RecentService) -> str | None:
    count = sum(served.outcome in ("failed", "expired") for served in seen.last)
    return (
        f"{count} of the last {len(seen.last)} requests failed or took too long"
        if count >= TROUBLED
        else None
    )


def _too_slow(seen: RecentService) -> str | None:
    slow = seen.missed.get("rtf p95")
    return None if slow is None else f"rtf p95 is {slow.value:.2f}, above {slow.limit:g}"


def _running_dry(seen: RecentService) -> str | None:
    count = sum(served.underruns > 0 for served in seen.last)
    if count < TROUBLED:
        return None
    return f"{count} of the last {len(seen.last)} requests had chunks that came too late"


def _late(seen: RecentService) -> str | None:
    late = seen.missed.get("ttfa_s p95")
    return None if late is None else f"ttfa_s p95 is {late.value:.2f} s, above {late.limit:g} s"


RULES = (
    ModeRule(STABILITY_FIRST, f"{TROUBLED} of the last {LOOK_BACK} failed or took too long", _failing),
    ModeRule(STABILITY_FIRST, "RTF p95 over KOKORO_SLO_RTF", _too_slow),
    ModeRule(AVOID_UNDERRUN, f"{TROUBLED} of the last {LOOK_BACK} had underruns", _running_dry),
    ModeRule(REDUCE_TTFA, "TTFA p95 over KOKORO_SLO_TTFA_S", _late),
)
"""The first one that is due decides: from the heaviest to the lightest."""


def wanted(seen: RecentService) -> tuple[Mode, str]:
    """The mode that is due by what is seen, and why."""
    for rule in RULES:
        because = rule.because(seen)
        if because is not None:
            return rule.mode, because
    return NORMAL, "nothing is amiss"


def table() -> list[dict[str, str]]:
    """The rows as plain data: `mode`, `trigger`, `changes`, `way_back`."""
    return [
        {
            "mode": rule.mode.name,
            "trigger": rule.trigger,
            "changes": rule.mode.changes,
            "way_back": rule.way_back,
        }
        for rule in RULES
    ]
