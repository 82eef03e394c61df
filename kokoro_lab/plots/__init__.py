"""Figures for notebooks. Each function takes data and returns a figure; none of them measures.

The only place that knows matplotlib, which is loaded when something is drawn.
"""

from kokoro_lab.plots.clips import (
    levels,
    levels_by_voice,
    loudness_over_time,
    spectrograms_compared,
    speech,
    within_band,
)
from kokoro_lab.plots.timing import ahead_of_the_player, heat_maps, loading, stages, way_to_first_audio
from kokoro_lab.plots.verdicts import (
    against_margins,
    between_anchors,
    error_rates,
    ladder,
    outcomes,
    pareto,
    right_answers,
    verdicts,
)

__all__ = [
    "against_margins",
    "ahead_of_the_player",
    "between_anchors",
    "error_rates",
    "heat_maps",
    "ladder",
    "levels",
    "levels_by_voice",
    "loading",
    "loudness_over_time",
    "outcomes",
    "pareto",
    "right_answers",
    "spectrograms_compared",
    "speech",
    "stages",
    "verdicts",
    "way_to_first_audio",
    "within_band",
]
