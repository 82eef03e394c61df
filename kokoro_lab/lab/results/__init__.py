"""Results of runs: how they are written, read, compared and exported.

`results/<notebook>/<run_id>/result.json` holds a run's figures, its verdict, and what it was made with.
`load()` gives all of them as a DataFrame; `kept`, `compared`, `pages` and `exporting` read them for people and
other programs.
"""

from kokoro_lab.lab.results.exporting import load
from kokoro_lab.lab.results.pages import write_index
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
from kokoro_lab.lab.results.run import (
    Finished,
    Run,
    facts_of,
    made_by,
    new_run_folder,
    note_beginning,
    open_run,
    results_folder,
)
