"""What ONNX Runtime itself gives to the providers that are here: what a prediction is held against."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnxruntime as ort


def assigned(
    model: Path, requested: Sequence[str | tuple[str, dict[str, str]]]
) -> dict[str, tuple[int, int]]:
    """What ONNX Runtime itself gives to each provider that is here.

    Parameters
    ----------
    model : Path
    requested : sequence
        Providers as `InferenceSession` takes them, the best first; the CPU takes what is left.

    Returns
    -------
    dict
        Provider → partitions and nodes. The CPU's nodes count as a partition each.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ort.InferenceSession(str(model), options, providers=list(requested))
    found: dict[str, tuple[int, int]] = {}
    for partition in session.get_provider_graph_assignment_info():
        partitions, nodes = found.get(partition.ep_name, (0, 0))
        found[partition.ep_name] = (partitions + 1, nodes + len(partition.get_nodes()))
    return found
