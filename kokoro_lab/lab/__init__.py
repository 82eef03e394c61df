"""The lab: what judges the engine. It may import anything; only `commands` and `serve` import it, and late.

results, runs: what a run leaves, how a notebook is run        gates, listening: verdicts, by machine and ear
bench, tuning, conversion: what is timed, fitted, exported     faults: what is broken on purpose
routes: what the lab hangs into the server                     fixtures, sweeps, plots: texts, grids, figures
report: the page of a run, for readers

It needs the extra `lab`, and says so.
"""

from kokoro_lab.extras import require

require("lab", "pandas", "scipy", "pyloudnorm", "librosa", "matplotlib", "papermill", "mistune", "ipywidgets")
