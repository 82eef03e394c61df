"""One notebook for every combination of some parameters: here, a few at a time, or on a Dask cluster.

Whatever becomes of one run, the others are run, and every one has its row in one table at the end:
`results/<notebook>/sweep-<id>/sweep.csv`, `.md`, `.html` and `.json`.
"""

from kokoro_lab.lab.sweeps.sweep import Sweep, grid, run_sweep, table
