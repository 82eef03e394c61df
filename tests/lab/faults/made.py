"""Scenarios as tests write them."""

from __future__ import annotations

import json

from kokoro_lab.lab.faults import Scenario, read_scenario

PROVIDER_LOST = {"kind": "provider_lost", "at_window": 1}
ALLOCATION_FAILS = {"kind": "allocation_fails", "at_window": 1}
STALLS = {"kind": "g2p_stalls", "at_sentence": 0, "stall_s": 30}
LOST_IN_QUEUE = {"kind": "chunks_lost", "seam": "queue", "one_in": 60}
LOST_ON_LINE = {"kind": "chunks_lost", "seam": "transport", "one_in": 60}
BURSTS = {"kind": "bursts", "seam": "queue", "every_s": 0.1, "shortest_s": 0.01, "longest_s": 0.02}
BURSTS_ON_LINE = {**BURSTS, "seam": "transport", "every_s": 0.01}
CUT = {"kind": "connection_cut", "from_share": 0.4, "to_share": 0.6}
SILENT = {"kind": "connection_silent", "from_share": 0.4, "to_share": 0.6}
THROTTLED = {"kind": "throttled", "bytes_per_s": 1_000_000}
FULL = {"kind": "disk_refuses", "because": "full"}
BALLAST = {"kind": "ballast", "size_mb": 64}


def scenario(*faults: dict[str, object], transports: tuple[str, ...] = ("sse",), seed: int = 1) -> Scenario:
    """One that holds `faults`."""
    fields = {"name": "made", "title": "Made", "seed": seed, "transports": transports, "faults": faults}
    return read_scenario(json.dumps(fields), "made.json")
