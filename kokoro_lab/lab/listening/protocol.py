"""The rule by which a panel's answers are judged, written into its folder before anybody listens.

A rule that is chosen when the answers are known can show anything. `protocol.json` holds the digest of the
test, the number of listeners, and the rule in sentences. The result is evaluated by it: nothing is concluded
before all listeners have finished, and a protocol that is not of this test, or holds another rule than the
program's, is refused.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.errors import AnswersError
from kokoro_lab.lab.listening.answers import SUFFIX
from kokoro_lab.lab.listening.plan import CATCHES_A_SLIP, ListeningPlan
from kokoro_lab.metrics import abx
from kokoro_lab.metrics.intervals import ALPHA

PROTOCOL_FILE = "protocol.json"


def rule_of(plan: ListeningPlan, listeners: int) -> list[str]:
    """The rule in sentences, for this plan and number of listeners."""
    slips = plan.catches // CATCHES_A_SLIP
    attention = f"A listener who misses more than {slips} of {plan.catches} catch trials is not counted."
    return [
        f"{listeners} listeners answer {plan.judged} trials each.",
        "Nothing is concluded before all of them have finished.",
        *([attention] if plan.catches else []),
        f"The test is an exact binomial test against guessing, one-sided, with p ≤ {ALPHA:g}.",
        f"If the listeners differ (chi-square test on random tables, p ≤ {ALPHA:g}), a difference is heard "
        "if the test finds it for one listener alone, with p multiplied by the number of listeners. "
        "Otherwise nothing is shown.",
        "If they do not differ, but a listener is right so seldom that guessing gives as few with "
        f"p ≤ {abx.ODD_P:g}, nothing is shown.",
        "In all other cases a difference is heard if the test finds it for all answers together.",
        f"If it does not, inaudibility is shown if {abx.LEAST_LISTENERS} listeners or more are counted and "
        f"answers are right in less than {100 * abx.INAUDIBLE_BELOW:g} % of trials with 95 % confidence "
        "(exact, one-sided).",
    ]


def write_protocol(folder: Path, plan: ListeningPlan, listeners: int) -> None:
    """Write the rule into the folder of a test that nobody has begun.

    Until a listener begins, the protocol is written again if the number of listeners changes. Then it stays
    as it is. A test that was begun without a protocol gets none, since it would not have been written before
    the answers.
    """
    path = folder / PROTOCOL_FILE
    if any(folder.glob(f"*{SUFFIX}")) or planned_listeners(folder, plan) == listeners:
        return
    written = datetime.now(UTC).isoformat(timespec="seconds")
    rule = rule_of(plan, listeners)
    write_json(path, {"test": plan.sha256, "listeners": listeners, "written": written, "rule": rule})


def planned_listeners(folder: Path, plan: ListeningPlan) -> int:
    """How many listeners the protocol in the folder asks for; 0 without a protocol.

    Raises
    ------
    AnswersError
        The protocol is damaged, of another test, or states another rule than this program applies.
    """
    path = folder / PROTOCOL_FILE
    if not path.exists():
        return 0
    try:
        kept = json.loads(path.read_text("utf-8"))
        listeners = kept["listeners"]
        same = kept["test"] == plan.sha256 and kept["rule"] == rule_of(plan, listeners)
    except (ValueError, KeyError, TypeError):
        same = False
    if not same:
        mend = "Bring it back from a copy, or evaluate with the version of kokoro-lab that wrote it."
        raise AnswersError.of(path, f"{path.name} is not the protocol of this test.", mend, "folder")
    return int(listeners)
