"""The lab: notebooks, gates, benchmarks and tuning, which judge the engine.

Only `commands` and `serve` import it, and only when they need it.

results, runs              what a run leaves on disk; how a notebook is run
gates, listening           verdicts: by limits that were set before, and by people who listen
bench, compare             benchmarks; configurations of the engine compared with each other
tuning, conversion         which settings suit a machine; graphs for other runtimes
faults                     faults that are injected on purpose
routes                     the HTTP routes that the lab adds to the server
fixtures, sweeps, plots    texts to speak; grids of parameters; drawings
report                     the page of a run, for readers

The lab needs the extra `lab`; without it, an error says so.
"""

from kokoro_lab.extras import require

require("lab", "pandas", "scipy", "pyloudnorm", "librosa", "matplotlib", "papermill", "mistune", "ipywidgets")
