"""Predicts how much of each graph every provider takes, and whether fixed shapes help.

The model has four stages: *prosody* (durations, pitch and energy of a segment), *trunk* (512 features for
each frame of 12.5 ms), *excitation* (the source signal of the voice) and *vocoder* (samples).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.graphs.making import make_stages
from kokoro_lab.graphs.mlprogram import ERROR_HIGH
from kokoro_lab.graphs.recipes import recipes
from kokoro_lab.graphs.signatures import whole_trunk
from kokoro_lab.graphs.static_passes import SPECTRUM
from kokoro_lab.lab.conversion import node_costs, partitions
from kokoro_lab.lab.conversion.exports import VocoderInputs, evaluated, windows_agree_db
from kokoro_lab.lab.research.operator_cases import first_feed
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.lab.tuning.reporter import whole_vocoder
from kokoro_lab.model import static_vocoder
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.model.static_vocoder import WINDOWS, StaticVocoder, StaticWindow, static_folder
from kokoro_lab.speech.engine import Engine
from kokoro_lab.text.language import resolve_language
from kokoro_lab.weights.store import model_path
from kokoro_lab.weights.voices import load_voice

WHOLE, STATIC = "whole graph", "static vocoder"
PIPELINE = ("prosody", "trunk", "excitation", "spectrum", STATIC)
"""The graphs that run, one after the other, if an accelerator computes the vocoder's windows."""
GRAPHS = (WHOLE, "prosody", "trunk", "excitation", "vocoder", "spectrum", STATIC)
INTENDED = "Core ML, MLProgram, fixed shapes only"
"""The provider for which the static vocoder is made."""
SHARE_LOW = 0.85
AGREEMENT_LOW_DB = 100.0


def speak(engine: Engine, text: str, voice: str) -> VocoderInputs:
    """The first segment of a text, prepared in single precision.

    Raises
    ------
    ParameterError
        The engine speaks another variant: the graphs that are analysed are fp32's.
    """
    decoder = _decoder(engine)
    pack = load_voice(voice, engine.config.home)
    segments = FrontEnd().segments(text, resolve_language(pack.language), lambda _: None)
    token_ids = tuple(next(iter(segments)).token_ids)
    return VocoderInputs.of(decoder, token_ids, pack.style(len(token_ids)))


def _decoder(engine: Engine) -> StagedDecoder:
    if not isinstance(engine.decoder, StagedDecoder) or engine.config.variant != "fp32":
        raise ParameterError(
            "Only the graphs of fp32 are analysed.",
            field="variant",
            value=engine.config.variant,
            allowed="fp32",
        )
    return engine.decoder


def _feed(sentence: VocoderInputs) -> dict[str, Any]:
    """Every input of every graph, by name, outputs of earlier graphs included."""
    prosody = sentence.prosody
    first = first_feed(sentence.token_ids, prosody.style) | whole_trunk(prosody.frames // 2)
    return first | whole_vocoder(prosody, sentence.scale, sentence.shift, known=True)


def analyse(config: EngineConfig, sentence: VocoderInputs, *, runs: int = 1) -> pd.DataFrame:
    """Predict for every graph what each provider takes, weighted by the nodes' costs on the CPU.

    The graphs are made only for this analysis, in single precision and with ONNX Runtime's own operators, and
    then deleted.

    Parameters
    ----------
    runs : int
        How many runs of each graph are timed, after a first run that is not timed.

    Returns
    -------
    pandas.DataFrame
        A row for each graph, provider and reason of refusal; the reason "" stands for the nodes that the
        provider takes. Columns: graph, provider, operator, reason, nodes, time_s, operations (floating-point,
        for the whole sentence), partitions (of graph and provider).
    """
    window = WINDOWS[-1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made_by = {**recipes("fp32", native=False), **static_vocoder.recipes((window,))}
        make_stages(folder / "graphs", config, made_by)
        feed = _feed(sentence)
        tables = []
        for graph in GRAPHS:
            path, times = _graph(graph, folder / "graphs", config, window, sentence.prosody.frames)
            if graph == STATIC:
                feed = sentence.feed(window, feed[SPECTRUM])
            path = node_costs.optimised(path, folder, feed)
            seen = node_costs.observe(path, feed, runs)
            feed |= seen.outputs
            model = partitions.load(path)
            for provider in partitions.providers():
                found = partitions.partition(model, provider, seen.tensors)
                tables.append(_weighed(found, times * seen.costs).assign(graph=graph))
            for left in folder.glob("*.weights"):
                left.unlink()
    return pd.concat(tables, ignore_index=True)


def _graph(
    graph: str, folder: Path, config: EngineConfig, window: StaticWindow, frames: int
) -> tuple[Path, int]:
    """The path of a graph, and how often the graph runs for a segment of `frames`."""
    if graph == WHOLE:
        return model_path("fp32", config.home), 1
    if graph == STATIC:
        return folder / f"{window.name}.onnx", math.ceil(frames / window.frames)
    return folder / f"{graph}.onnx", 1


def _weighed(found: partitions.Partitioning, costs: pd.DataFrame) -> pd.DataFrame:
    """A row for what a provider takes, and for each reason for which it refuses a node."""
    why = dict.fromkeys(found.taken, ("", "")) | dict(found.refused)
    nodes = pd.DataFrame.from_dict(why, orient="index", columns=["operator", "reason"])
    groups = nodes.join(costs).groupby(["operator", "reason"])
    rows = groups[["time_s", "operations"]].sum().assign(nodes=groups.size())
    return rows.reset_index().assign(provider=found.provider, partitions=len(found.partitions))


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Index: graph and provider. Columns: nodes, partitions, and the part that the provider takes in percent
    of nodes, of time and of arithmetic."""
    groups = rows.groupby(["graph", "provider"], sort=False)
    taken = rows[rows.reason == ""].groupby(["graph", "provider"], sort=False)
    shown = pd.DataFrame({"nodes": groups.nodes.sum(), "partitions": groups.partitions.first()})
    for column in ("nodes", "time_s", "operations"):
        share = taken[column].sum().reindex(shown.index, fill_value=0) / groups[column].sum()
        shown[f"{column.removesuffix('_s')} taken, %"] = (100 * share).round(1)
    return shown


def refused(rows: pd.DataFrame, provider: str = INTENDED) -> pd.DataFrame:
    """What a provider refuses of each graph: operator, why, how many nodes, share of the graph's time."""
    of_it = rows[rows.provider == provider]
    time_s = of_it.groupby("graph").time_s.sum()
    shown = of_it[of_it.reason != ""].copy()
    shown["time, %"] = (100 * shown.time_s / shown.graph.map(time_s)).round(1)
    shown = shown.sort_values("time_s", ascending=False).sort_values("graph", key=_order, kind="stable")
    return shown[["graph", "operator", "reason", "nodes", "time, %"]].reset_index(drop=True)


def _order(graph: pd.Series) -> pd.Series:
    return graph.map({name: k for k, name in enumerate(GRAPHS)})


def shares(rows: pd.DataFrame) -> dict[str, float]:
    """The share of a sentence's arithmetic, and of its time, that is in the nodes of the static vocoder which
    `INTENDED` takes. The whole is that of all graphs of `PIPELINE`."""
    of_it = rows[(rows.provider == INTENDED) & rows.graph.isin(PIPELINE)]
    fixed = of_it[(of_it.graph == STATIC) & (of_it.reason == "")]
    return {
        "operations": float(fixed.operations.sum() / of_it.operations.sum()),
        "time": float(fixed.time_s.sum() / of_it.time_s.sum()),
    }


def agreement_db(engine: Engine, sentence: VocoderInputs) -> float:
    """The SNR of the static windows' samples against those of the engine's own windows, in dB."""
    fixed = StaticVocoder(static_folder(engine.config), engine.config)
    return windows_agree_db(_decoder(engine), fixed, sentence)


def programs(config: EngineConfig, sentence: VocoderInputs, precisions: Sequence[str]) -> pd.DataFrame:
    """Write the smallest window as ML Programs, read them back, evaluate them in NumPy, and delete them.

    Returns
    -------
    pandas.DataFrame
        A row for each precision: precision, and what `exports.evaluated` gives.
    """
    window = WINDOWS[0]
    source = static_folder(config)
    fixed = StaticVocoder(source, config, static_vocoder.StaticWindows((window,)))
    rows = []
    for precision in precisions:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{window.name}.mlpackage"
            static_vocoder.write_program(source, window, path, precision)
            rows.append({"precision": precision, **evaluated(path, window, fixed, sentence)})
    return pd.DataFrame(rows)


def judge(rows: pd.DataFrame, compared_db: float, written: pd.DataFrame, graph: str = STATIC) -> list[Check]:
    """The checks: `INTENDED` takes the fixed windows as a whole, these do most of the work, and their samples
    agree with the engine's. In a control, another `graph` is judged instead of the fixed windows."""
    fixed = rows[(rows.graph == graph) & (rows.provider == INTENDED)]
    return [
        Check("static_partitions_count", float(fixed.partitions.max()), low=1, high=1),
        Check("static_refused_nodes_count", float(fixed[fixed.reason != ""].nodes.sum()), high=0),
        Check("static_share_of_operations_ratio", shares(rows)["operations"], low=SHARE_LOW),
        Check("static_agreement_db", compared_db, low=AGREEMENT_LOW_DB),
        *(
            Check(f"program_{row.precision}_error_ratio", row.error, high=ERROR_HIGH[row.precision])
            for row in written.itertuples()
        ),
    ]


def controls(rows: pd.DataFrame, compared_db: float, written: pd.DataFrame) -> list[NegativeControl]:
    """Controls: graphs and figures that must fail the checks."""
    faulty = {
        "the vocoder with lengths that vary": judge(rows, compared_db, written, "vocoder"),
        "the graph as it was published": judge(rows, compared_db, written, WHOLE),
        "a program that is another": judge(rows, compared_db, written.assign(error=1.0)),
    }
    return [NegativeControl(name, caught=bool(failed(checks))) for name, checks in faulty.items()]
