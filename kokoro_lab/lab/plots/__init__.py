"""Plots for notebooks. Each function takes data and returns a `Plot`; none of them measures.

Only this folder imports matplotlib, and only when something is drawn.
"""

from kokoro_lab.lab.plots.clips import (
    levels,
    levels_by_voice,
    loudness_over_time,
    spectrograms_compared,
    speech,
    within_band,
)
from kokoro_lab.lab.plots.palette import BLUE, GREEN, MUTED, ORANGE, YELLOW
from kokoro_lab.lab.plots.ratios import (
    against_bands,
    against_default,
    by_length,
    cold_starts,
    cost_ratios,
    ratios_in_turn,
    tuned_front,
)
from kokoro_lab.lab.plots.style import Plot
from kokoro_lab.lab.plots.timing import (
    ahead_of_the_player,
    capacity,
    heat_maps,
    held_over_time,
    loading,
    over_a_soak,
    stages,
    way_to_first_audio,
    written_and_heard,
)
from kokoro_lab.lab.plots.verdicts import (
    against_margins,
    between_anchors,
    error_rates,
    growth,
    ladder,
    outcomes,
    pareto,
    taken_by,
    verdicts,
)
