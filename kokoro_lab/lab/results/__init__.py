"""What runs leave behind, written and read.

`results/<notebook>/<run_id>/result.json` holds a run's figures, its verdict, and what it was made with.
"""

from kokoro_lab.lab.results.records import (
    BEGUN,
    CRASH,
    CRASHED,
    FAILED,
    INTERRUPTED,
    PASSED,
    RESULT,
    RUNNING,
    Check,
    NegativeControl,
    Result,
    crashed,
    failed,
    read_result,
)
from kokoro_lab.lab.results.run import Run, facts_of, made_by, new_run_folder, open_run, results_folder

__all__ = [
    "BEGUN",
    "CRASH",
    "CRASHED",
    "FAILED",
    "INTERRUPTED",
    "PASSED",
    "RESULT",
    "RUNNING",
    "Check",
    "NegativeControl",
    "Result",
    "Run",
    "crashed",
    "facts_of",
    "failed",
    "made_by",
    "new_run_folder",
    "open_run",
    "read_result",
    "results_folder",
]
