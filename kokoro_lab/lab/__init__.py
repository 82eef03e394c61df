"""The lab: notebooks, gates, benchmarks and tuning, which judge the engine.

Only `commands` and `serve` import it, and only when they need it.

results, runs: what a run leaves, how a notebook is run        gates, listening: verdicts, by machine and ear
bench, tuning, conversion: what is timed, fitted, exported     faults: what is broken on purpose
routes: what the lab hangs into the server                     fixtures, sweeps, plots: texts, grids, figures
report: the page of a run, for readers

The lab needs the extra `lab`; without it, an error says so.
"""

from kokoro_lab.extras import require

require("lab", "pandas", "scipy", "pyloudnorm", "librosa", "matplotlib", "papermill", "mistune", "ipywidgets")
