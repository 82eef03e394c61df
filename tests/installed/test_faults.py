"""The gate of faults, as users run it, on a line that lets chunks overtake each other."""

from __future__ import annotations

import json

import pytest

from tests.installed.command import Installed

TEXT = "text=The kettle is on, and the window is open to the garden."


@pytest.mark.test_all
def test_chunks_out_of_order_cost_no_sample_and_who_plays_them_as_they_come_is_caught(
    installed: Installed,
) -> None:
    given = ("scenarios=chunks_reordered_on_line", "transports=sse", TEXT)
    arguments = [argument for value in given for argument in ("-p", value)]
    done = installed.run("run", "42_faults", *arguments, "--json", timeout_s=500)
    assert done.returncode in (0, 1), done.stderr  # 1 where a time is over its limit on a busy machine
    result = json.loads(done.stdout)["result"]
    found = {check["name"]: check for check in result["checks"]}
    assert found["streams_without_their_fault_count"]["value"] == 0
    assert found["streams_not_whole_count"]["value"] == 0
    controls = {control["name"]: control["caught"] for control in result["controls"]}
    assert controls["chunks that are played as they come, out of their order"]
