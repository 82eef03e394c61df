"""Would the gate of faults notice? Careless listeners, and streams that are not whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

import numpy as np
import pandas as pd

from kokoro_lab.lab.bench.faulty import DisturbedStream, FaultySpeaker, disturbed
from kokoro_lab.lab.faults.scenario import Scenario, Transport, load_scenario
from kokoro_lab.lab.gates.faults import judge, outcome_of
from kokoro_lab.lab.results import NegativeControl

LATE_S = 1.2
"""How long the control's listener waits."""
CHUNK_BYTES = 2_400


def controls(
    subjects: Mapping[Transport, FaultySpeaker], whole: Mapping[Transport, DisturbedStream], text: str
) -> list[NegativeControl]:
    """What must not pass. A chunk can only be missed where chunks have ids, which bare bytes have not.

    Parameters
    ----------
    subjects, whole : mapping
        What speaks by each transport, and its undisturbed stream.
    """
    found = [_careless(subjects, whole, text)]
    tagged = [transport for transport in subjects if transport != "http"]
    if tagged:
        scenario, transport = load_scenario("chunks_lost_on_line"), tagged[0]
        stream = disturbed(subjects[transport], scenario, whole[transport].heard, asks_again=False)
        outcome = outcome_of(stream, whole[transport], text, scenario, transport)
        missed = bool(stream.struck) and not outcome.passed
        found.append(NegativeControl("a lost chunk that nobody asks for again", missed))
        scenario = load_scenario("chunks_reordered_on_line")
        stream = disturbed(subjects[transport], scenario, whole[transport].heard, reorders=False)
        outcome = outcome_of(stream, whole[transport], text, scenario, transport)
        jumbled = bool(stream.struck) and not outcome.passed
        found.append(NegativeControl("chunks that are played as they come, out of their order", jumbled))
    first, scenario = next(iter(whole.values())), load_scenario("connection_cut")
    return [
        *found,
        *_changed(first, text, scenario),
        *_unread(first, text),
        *_unnoticed(first, text, scenario),
    ]


def _careless(
    subjects: Mapping[Transport, FaultySpeaker], whole: Mapping[Transport, DisturbedStream], text: str
) -> NegativeControl:
    """Who does not go on where a line is cut or, where there is no line, a chunk is missing."""
    transport: Transport = next((name for name in subjects if name != "library"), "library")
    scenario = load_scenario("chunks_lost_in_queue" if transport == "library" else "connection_cut")
    stream = disturbed(subjects[transport], scenario, whole[transport].heard, goes_on=False)
    caught = (
        bool(stream.struck) and not outcome_of(stream, whole[transport], text, scenario, transport).passed
    )
    return NegativeControl("a listener who does not go on", caught)


def _changed(whole: DisturbedStream, text: str, scenario: Scenario) -> list[NegativeControl]:
    """What was heard is not what was spoken."""
    pcm = whole.heard.pcm
    middle = len(pcm) // 4 * 2
    before, after, chunk = pcm[:middle], pcm[middle:], pcm[middle - CHUNK_BYTES : middle]
    changed = {
        "50 ms heard twice": before + chunk + after,
        "50 ms never heard": before[:-CHUNK_BYTES] + after,
        "a sample off by one bit": before + bytes([after[0] ^ 1]) + after[1:],
    }
    return [
        NegativeControl(name, not outcome_of(_heard(whole, pcm), whole, text, scenario, "sse").passed)
        for name, pcm in changed.items()
    ]


def _unread(whole: DisturbedStream, text: str) -> list[NegativeControl]:
    """What was spoken are not the words of the text. Other samples alone are no fault of a stalled G2P."""
    stalled, (*_, spoken) = load_scenario("g2p_stalled"), whole.spoken
    other = _heard(whole, bytes((~np.frombuffer(whole.heard.pcm, "<i2")).tobytes()))
    if not outcome_of(other, whole, text, stalled, "sse").passed:
        return [NegativeControl("the same words in another voice pass", caught=False)]
    words = spoken.words
    changed = {
        "a word that was not spoken": words[:1] + words[2:],
        "a word that was spoken twice": words[:2] + words[1:],
        "two words that changed places": (words[1], words[0], *words[2:]),
    }
    return [
        NegativeControl(
            name,
            not outcome_of(
                replace(other, spoken=(replace(spoken, words=said),)), whole, text, stalled, "sse"
            ).passed,
        )
        for name, said in changed.items()
    ]


def _unnoticed(whole: DisturbedStream, text: str, scenario: Scenario) -> list[NegativeControl]:
    """A whole stream that is no pass: it came too late, or nothing was put in."""
    arrivals_s = whole.heard.arrivals_s
    late = tuple(at + (i > 0) * (arrivals_s[-1] + LATE_S) for i, at in enumerate(arrivals_s))
    streams = {
        "a silence of over a second": (
            replace(whole, struck=1, heard=replace(whole.heard, arrivals_s=late)),
            "longest_silence_s",
        ),
        "a fault that never struck": (replace(whole, struck=0), "streams_without_their_fault_count"),
    }
    found = []
    for name, (stream, check) in streams.items():
        table = pd.DataFrame([asdict(outcome_of(stream, whole, text, scenario, "sse"))])
        found.append(NegativeControl(name, [c.name for c in judge(table, 1, 0.0) if not c.passed] == [check]))
    return found


def _heard(whole: DisturbedStream, pcm: bytes) -> DisturbedStream:
    return replace(whole, heard=replace(whole.heard, pcm=pcm), struck=1)
