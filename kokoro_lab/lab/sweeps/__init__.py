"""Sweeps: runs a notebook for every combination of parameters, here or on a Dask cluster.

If one run fails, the others are still run, and each has a row in one table at the end:
`results/<notebook>/sweep-<id>/sweep.csv`, `.md`, `.html` and `.json`.
"""

from kokoro_lab.lab.sweeps.sweep import Sweep, grid, run_sweep, table
