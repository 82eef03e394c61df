"""The report of the tests says which commit was tested: the checklist takes it for nothing else."""

from __future__ import annotations

import pytest
from _pytest.junitxml import xml_key

from kokoro_lab.provenance import TESTED_COMMIT, TESTED_DIRTY, git_state


@pytest.hookimpl(trylast=True)  # behind the plugin that opens the report
def pytest_configure(config: pytest.Config) -> None:
    """Into the report, if one is written.

    By pytest's own key: its fixture for this, `record_testsuite_property`, is lost where tests are spread
    over processes, as the report is written by the one that runs none.
    """
    report = config.stash.get(xml_key, None)
    if report is not None:
        state = git_state()
        report.add_global_property(TESTED_COMMIT, state["commit"])
        report.add_global_property(TESTED_DIRTY, state["dirty"])
