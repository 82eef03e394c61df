"""The report of the tests says which commit was tested: the checklist takes it for nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kokoro_lab.provenance import TESTED_COMMIT, TESTED_DIRTY, git_state


@pytest.fixture(scope="session", autouse=True)
def tested_commit(record_testsuite_property: Callable[[str, object], None]) -> None:
    state = git_state()
    record_testsuite_property(TESTED_COMMIT, state["commit"])
    record_testsuite_property(TESTED_DIRTY, state["dirty"])
