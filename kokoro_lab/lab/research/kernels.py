"""Each operator of ours beside ONNX Runtime's own, and beside the limit of this processor.

For each kind of operator, the node with the most work is taken out of its stage's graph. Its peer is the part
of the graph without our operators that computes the same tensors from the same tensors. Both run on one
thread, on tensors of a real text. The limit is the roofline (Williams, Waterman, Patterson, CACM 52(4),
2009): the time for the operator's products at the highest rate measured on a core, or the time for reading
and writing all tensors once, whichever is longer. A kernel that needs fewer products than the definition may
be faster than this.
"""

from __future__ import annotations

import ctypes
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
from onnx import numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.graphs import signatures
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.compare.comparison import ratio
from kokoro_lab.lab.fixtures import require_known
from kokoro_lab.lab.research.turns import take_turns
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.lab.tuning.comparison import Spoken
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.native.operators import (
    SOURCES,
    Command,
    Native,
    flags_for,
    found_compilers,
    native_operators,
    processor_flags,
)
from kokoro_lab.sessions.providers import make_session

Tensors = dict[str, np.ndarray[Any, Any]]

SETS: dict[str, dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "x86_64": {
        "avx2": (("avx2", "fma"), ("-march=x86-64-v3",)),
        "avx2-vnni": (("avx2", "avx_vnni"), ("-march=x86-64-v3", "-mavxvnni")),
        "avx512": (("avx512bw", "avx512vl"), ("-march=x86-64-v4",)),
        "avx512-vnni": (("avx512_vnni",), ("-march=x86-64-v4", "-mavx512vnni")),
    },
    "aarch64": {
        "neon": ((), ("-march=armv8-a",)),
        "dotprod": (("asimddp",), ("-march=armv8.2-a+dotprod",)),
        "i8mm": (("i8mm",), ("-march=armv8.6-a+i8mm+dotprod",)),
    },
}
"""Architecture → instruction set, the best one last → what the processor must have, and flags."""
NATIVE = "native"
"""Instruction set where the architecture is in no list: whatever the compiler finds."""
ORT = "ONNX Runtime"
BYTE_OPERATORS = ("QuantConv", "QuantSnakeConv", "QuantProduct")
FOOTPRINTS_KIB = (64, 256, 1024, 4096, 16384, 131072)
LEAST_S = 0.004
"""The least length of each measurement."""
LEAST_SNR_DB = 40.0
"""Least SNR of our outputs against ONNX Runtime's. With integers, roundings differ, which at this level is
not heard."""
SLOWED = 1.5
PRODUCTS = ("Conv", "ConvTranspose", "MatMul", "Gemm", "MatMulInteger", "MatMulIntegerToFloat", "LSTM")
DEVICES = pd.DataFrame(
    {
        "device": ["M1", "M2", "M4"],
        "gpu_tflops": [2.6, 3.6, 4.3],
        "memory_gb_per_s": [68.0, 100.0, 120.0],
        "cpu_gflops": [410.0, 450.0, 560.0],
    }
)
"""Peaks by data sheets and clocks, of the smallest chip of each generation. The CPU's are NEON on all
performance cores."""
LAUNCH_US, COMMAND_US = 5.0, 150.0
"""Assumed times: of a kernel's dispatch, and of submitting a command buffer and waiting for it."""
BYTES_OVER_FLOATS = 4.0
"""Assumed: how many products of bytes an Apple core computes in the time of one product of floats, by its
dot-product instructions."""
ATTAINED = 0.5
"""Assumed: the share of its peak that a good convolution reaches on a GPU."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A node of ours, its peer without our operators, and the inputs of both.

    `operations` counts the operations of its products by their definition, two for each multiplication.
    `traffic_bytes` counts the bytes of all inputs and outputs once.
    """

    kind: str
    stage: str
    ours: onnx.ModelProto
    theirs: onnx.ModelProto
    feed: Tensors
    their_feed: Tensors
    operations: float
    traffic_bytes: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The highest rates of one core with an instruction set: operations a second on floats and on bytes, and
    bytes read a second for each size of buffer in KiB."""

    float_gops: float
    byte_gops: float
    read_gb_per_s: Mapping[int, float] = field(default_factory=dict)

    def seconds(self, case: Case) -> float:
        """The least time that a case could take."""
        peak = self.byte_gops if case.kind in BYTE_OPERATORS else self.float_gops
        sizes = np.log([*self.read_gb_per_s])
        read = np.interp(np.log(case.traffic_bytes / 1024), sizes, [*self.read_gb_per_s.values()])
        return float(max(case.operations / peak if peak else 0.0, case.traffic_bytes / read) / 1e9)


def sets_here() -> dict[str, tuple[str, ...]]:
    """The instruction sets that this processor has, each with its compiler flags; the best one last."""
    known = SETS.get({"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine()), {})
    has = set(processor_flags().split())
    return {name: flags for name, (needs, flags) in known.items() if has.issuperset(needs)} or {
        NATIVE: ("-march=native",)
    }


def chosen_sets(written: str) -> list[str]:
    """The chosen instruction sets: a list with commas, `best`, or all that this processor has.

    Raises
    ------
    ParameterError
        This processor lacks one of them.
    """
    here = sets_here()
    if written == "best":
        return [*here][-1:]
    for name in filter(None, written.split(",")):
        require_known("instruction set here", name, here, "sets")
    return written.split(",") if written else list(here)


def compiled(sources: Sequence[Path], flags: Sequence[str], library: Path) -> Path:
    """A shared library of C++ sources, for one instruction set.

    Raises
    ------
    ParameterError
        There is no compiler, or it fails.
    """
    compilers = found_compilers()
    if not compilers:
        raise ParameterError("No C++ compiler was found.", field="sets", mend="Install g++ or clang++.")
    compiler: Command = compilers[0]
    usual = [flag for flag in flags_for(compiler) if not flag.startswith(("-march", "-mcpu"))]
    command = [*compiler, *usual, *flags, *map(str, sources), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = f"{compiler[0]} failed: {done.stderr[:300]}"
        raise ParameterError(said, field="sets", value=library.stem, mend="Name other sets.")
    return library


def operators_for(name: str, folder: Path) -> Path:
    """Our operators, compiled for an instruction set."""
    return compiled(sorted(SOURCES.glob("*.cpp")), sets_here()[name], folder / f"operators-{name}.so")


def limits(name: str, folder: Path) -> Limits:
    """Measure the highest rates of a core with an instruction set: the best of some thirty loops."""
    source = Path(__file__).parent / "peak.cpp"
    library = ctypes.CDLL(str(compiled([source], sets_here()[name], folder / f"peak-{name}.so")))
    data = np.zeros(FOOTPRINTS_KIB[-1] * 256, np.float32)
    pointer = data.ctypes.data_as(ctypes.c_void_p)
    functions = [getattr(library, each) for each in ("float_products", "byte_products", "bytes_read")]
    for each in functions:
        each.restype = ctypes.c_double

    def best(function: Callable[..., float], *sizes: int) -> float:
        rounds, found = 1, 0.0
        for _ in range(40):
            began = time.perf_counter()
            done = function(ctypes.c_int64(rounds), pointer, *map(ctypes.c_int64, sizes))
            took = time.perf_counter() - began
            if took > LEAST_S:
                found = max(found, done / took / 1e9)
            else:
                rounds *= 4
        return found

    reads = {kib: best(functions[2], kib * 256) for kib in FOOTPRINTS_KIB}
    return Limits(best(functions[0]), best(functions[1]), reads)


@dataclass(frozen=True, slots=True, eq=False)
class RunStage:
    """A stage's graph with our operators and without, and tensors of it while it spoke: its inputs and
    outputs, and those of our operators."""

    name: str
    ours: onnx.ModelProto
    theirs: onnx.ModelProto
    seen: Tensors


def stages_of(config: EngineConfig, spoken: Spoken, window_frames: int) -> list[RunStage]:
    """Every stage of a variant, speaking a segment.

    Parameters
    ----------
    window_frames : int
        Length of the window in the middle that the vocoder decodes, in trunk frames of 12.5 ms.
    """
    native = native_operators(config)
    folders = stages_folder(config, native), stages_folder(replace(config, native="off"), Native(None))
    feed, found = first_feed(*spoken), []
    for stage in signatures.STAGES:
        ours, theirs = (onnx.load(signatures.graph_path(folder, stage)) for folder in folders)
        if stage == "vocoder":
            feed = window_feed(feed, folders[0], spoken[1], window_frames)
        seen = _seen(ours, feed, config, native)
        feed |= seen
        found.append(RunStage(stage, ours, theirs, seen))
    return found


def first_feed(token_ids: Sequence[int], style: np.ndarray[Any, Any]) -> Tensors:
    """The inputs of the prosody, and those inputs of the trunk that the prosody does not compute."""
    return {
        "input_ids": np.array([[PAD_ID, *token_ids, PAD_ID]], np.int64),
        "style": style,
        "speed": np.array([1.0], np.float32),
        signatures.DECODER_STYLE: style[:, :128],
    }


def window_feed(feed: Tensors, folder: Path, style: np.ndarray[Any, Any], frames: int) -> Tensors:
    """The vocoder's inputs for a window from the middle, which computes its own statistics."""
    trunk = feed[signatures.TRUNK]
    first = max(0, (trunk.shape[2] - frames) // 2)
    last = min(trunk.shape[2], first + frames)
    samples = slice(
        first * signatures.TRUNK_FRAME_SAMPLES,
        last * signatures.TRUNK_FRAME_SAMPLES + signatures.STFT_SIZE_SAMPLES,
    )
    scale, shift = AdainLayers.load(folder / "layers.npz").style_alone(style)
    return {
        signatures.TRUNK: np.ascontiguousarray(trunk[:, :, first:last]),
        signatures.EXCITATION: np.ascontiguousarray(feed[signatures.EXCITATION][:, samples]),
        signatures.SCALE: scale,
        signatures.SHIFT: shift,
        signatures.INNER: np.array([0, last - first, 0, last - first]),
        signatures.KNOWN: np.array(False),
    }


def is_ours(node: onnx.NodeProto) -> bool:
    return node.domain == "kokoro_lab"


def _session(model: onnx.ModelProto, config: EngineConfig, library: Path | None) -> Any:
    return make_session(
        model.SerializeToString(), replace(config, threads=1, provider="cpu"), library=library
    )


def _seen(model: onnx.ModelProto, feed: Tensors, config: EngineConfig, native: Native) -> Tensors:
    """Every tensor that goes into an operator of ours or comes out of one, and the stage's outputs."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    made = {name for node in model.graph.node for name in node.output}
    wanted = [n for node in model.graph.node if is_ours(node) for n in (*node.input, *node.output)]
    outputs = [each.name for each in model.graph.output]
    inner = [name for name in dict.fromkeys(wanted) if name in made and name not in outputs]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    inputs = {each.name for each in model.graph.input}
    if "stop" in inputs:
        feed = signatures.whole_trunk(feed[signatures.ALIGNED].shape[2]) | feed
    given = {name: value for name, value in feed.items() if name in inputs}
    session = _session(shown, config, native.library)
    names = [*outputs, *inner]
    return given | dict(zip(names, session.run(names, given), strict=True))


def cases(stage: RunStage, config: EngineConfig) -> Iterator[Case]:
    """For each kind of operator in a stage, the node with the most work."""
    seen = stage.seen
    weights = {each.name: int(np.prod(each.dims)) for each in stage.ours.graph.initializer}
    there = {name for node in stage.theirs.graph.node for name in node.output}

    def work(node: onnx.NodeProto) -> int:
        size = sum(weights.get(name, 0) for name in node.input) or 1
        return size * max(seen[name].size for name in node.output if name)

    # Where not all outputs are in the other graph, a node does more than any part of that
    nodes = [
        node for node in filter(is_ours, stage.ours.graph.node) if set(filter(None, node.output)) <= there
    ]
    taken: set[str] = set()
    for node in sorted(nodes, key=work, reverse=True):
        outputs = list(filter(None, node.output))
        feed = {name: seen[name] for name in node.input if name in seen}
        theirs, their_feed = between(stage.theirs, feed, outputs, seen)
        if node.op_type in taken or not their_feed.keys() <= feed.keys():
            continue  # the part of the other graph begins elsewhere: there a tensor has another name
        taken.add(node.op_type)
        ours = _model(stage.ours, [node], feed, outputs)
        arrays = [*feed.values(), *(seen[name] for name in outputs)]
        moved = sum(array.nbytes for array in [*arrays, *map(numpy_helper.to_array, ours.graph.initializer)])
        operations = operations_of(theirs, their_feed, config)
        yield Case(node.op_type, stage.name, ours, theirs, feed, their_feed, operations, float(moved))


def _names_in(node: onnx.NodeProto) -> Iterator[str]:
    """Names of the tensors that a node reads, in its branches, too."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _names_in(inner)


def between(
    model: onnx.ModelProto, feed: Tensors, outputs: Sequence[str], seen: Tensors
) -> tuple[onnx.ModelProto, Tensors]:
    """The part of a graph that computes some tensors from others, and its inputs."""
    makers = {name: node for node in model.graph.node for name in node.output}
    inputs = {each.name for each in model.graph.input}
    fed: Tensors = {}
    needed: set[int] = set()
    todo = list(outputs)
    while todo:
        name = todo.pop()
        if name not in outputs and name in feed:
            fed[name] = feed[name]
        elif name in inputs:
            fed[name] = seen[name]
        elif name in makers and id(makers[name]) not in needed:
            needed.add(id(makers[name]))
            todo += _names_in(makers[name])
    nodes = [node for node in model.graph.node if id(node) in needed]
    return _model(model, nodes, fed, outputs), fed


def _model(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], feed: Tensors, outputs: Sequence[str]
) -> onnx.ModelProto:
    """A model of some nodes of another one, with their weights."""
    read = {name for node in nodes for name in _names_in(node)}
    given = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim
        )
        for name, array in feed.items()
    ]
    weights = [each for each in model.graph.initializer if each.name in read and each.name not in feed]
    shown = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = onnx.helper.make_graph(list(nodes), "part", given, shown, weights)
    return onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def operations_of(model: onnx.ModelProto, feed: Tensors, config: EngineConfig) -> float:
    """Additions and multiplications of a graph's products, by their definitions."""
    weights = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type in PRODUCTS]
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    made = {name for node in model.graph.node for name in node.output}
    names = [name for node in nodes for name in (*node.input[:3], node.output[0]) if name in made]
    names = list(dict.fromkeys(names))
    there = {each.name for each in model.graph.output}
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in there)
    arrays = feed | weights
    if names:
        arrays |= dict(zip(names, _session(shown, config, None).run(names, feed), strict=True))
    return float(sum(_operations(node, arrays) for node in nodes))


def _operations(node: onnx.NodeProto, arrays: Tensors) -> float:
    first, second, out = arrays[node.input[0]], arrays[node.input[1]], arrays[node.output[0]]
    if node.op_type == "LSTM":
        return 2.0 * float(first.shape[0] * first.shape[1] * (second.size + arrays[node.input[2]].size))
    if node.op_type == "ConvTranspose":
        return 2.0 * float(first.size * second[0].size)
    return 2.0 * float(out.size * (second[0].size if node.op_type == "Conv" else first.shape[-1]))


def outputs_snr_db(case: Case, config: EngineConfig, library: Path) -> float:
    """SNR of our outputs against those of ONNX Runtime's operators; the least of all outputs."""
    ours = _session(case.ours, config, library).run(None, case.feed)
    theirs = _session(case.theirs, config, None).run(None, case.their_feed)
    found = []
    for own, their in zip(ours, theirs, strict=True):
        # Of what is not voiced nobody hears the phases, and ours are 0
        kept = own != 0 if case.kind == "Phases" else np.ones(own.shape, bool)
        found.append(signal_to_difference_db(their[kept], own[kept]))
    return float(min(found))


def race(
    found: Sequence[Case], config: EngineConfig, libraries: Mapping[str, Path], rounds: int
) -> pd.DataFrame:
    """Every case by ONNX Runtime and by our operators of each instruction set, interleaved.

    Returns
    -------
    pandas.DataFrame
        Rows as of `turns.take_turns`, one for each call, with its kind. `slowed` is a control: our operator
        with half as much work again.
    """
    rows = []
    for number, case in enumerate(tqdm(found, desc="operators", disable=None)):
        calls: dict[str, Callable[[], object]] = {
            ORT: partial(_session(case.theirs, config, None).run, None, case.their_feed)
        }
        for name, library in libraries.items():
            calls[name] = partial(_session(case.ours, config, library).run, None, case.feed)
        began = time.perf_counter()
        for call in calls.values():
            call()
        once = (time.perf_counter() - began) / len(calls)
        repeats = 1 + int(LEAST_S / max(once, 1e-6))
        best = calls[list(libraries)[-1]]
        ways = {name: partial(_again, call, repeats) for name, call in calls.items()}
        ways["slowed"] = partial(_again, best, round(SLOWED * repeats + 0.5))
        ways["same"] = ways[list(libraries)[-1]]
        for row in take_turns(ways, number, rounds):
            of_one = {figure: row[figure] / repeats for figure in ("wall_s", "compute_s")}
            rows.append({**row, **of_one, "kind": case.kind, "stage": case.stage})
    return pd.DataFrame(rows)


def _again(call: Callable[[], object], repeats: int) -> None:
    for _ in range(repeats):
        call()


def table_of(found: Sequence[Case], trials: pd.DataFrame, limited: Mapping[str, Limits]) -> pd.DataFrame:
    """A row a case and instruction set.

    Returns
    -------
    pandas.DataFrame
        stage, kind, set; ours_us, ort_us: medians of one call; ratio, low, high: ours over ONNX Runtime's;
        mega_operations, traffic_kb, limit_us; limit_share: of the limit's speed that ours has.
    """
    rows = []
    for number, case in enumerate(found):
        own = trials[trials.text_number == number].assign(text_number=lambda each: each["round"])
        medians = 1e6 * own.groupby("system").wall_s.median()
        for name, limit in limited.items():
            over = ratio(own, name, "wall_s", ORT)
            limit_us = 1e6 * limit.seconds(case)
            rows.append(
                {"stage": case.stage, "kind": case.kind, "set": name}
                | {"ours_us": medians[name], "ort_us": medians[ORT]}
                | {"ratio": over.value, "low": over.low, "high": over.high}
                | {"mega_operations": case.operations / 1e6, "traffic_kb": case.traffic_bytes / 1e3}
                | {"limit_us": limit_us, "limit_share": limit_us / medians[name]}
            )
    return pd.DataFrame(rows)


def limits_table(limited: Mapping[str, Limits]) -> pd.DataFrame:
    """The highest rates of a core; a row for each instruction set."""
    rows = {
        name: {"float_gops": each.float_gops, "byte_gops": each.byte_gops}
        | {f"read_gb_per_s_{kib}_kib": speed for kib, speed in each.read_gb_per_s.items()}
        for name, each in limited.items()
    }
    return pd.DataFrame(rows).T


def best_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the best instruction set."""
    return table[table.set == table.set.iloc[-1]]


def against_ort(table: pd.DataFrame) -> pd.DataFrame:
    """The ratios of the best instruction set, as `plots.against_default` draws them."""
    rows = best_rows(table)
    return rows.set_index(rows.stage + ", " + rows.kind)[["ratio", "low", "high"]]


def on_paper(operations: float, traffic_bytes: float, launches: int, table: pd.DataFrame) -> pd.DataFrame:
    """The times that a kernel for Apple's GPU would have to beat for one window: all computed, none measured.

    Parameters
    ----------
    operations, traffic_bytes : float
        Operations and bytes of the window.
    launches : int
        Kernels, if each operator of ours were one.
    table : pandas.DataFrame
        From `table_of`. The vocoder's convolutions are assumed to reach the same share of the limit on
        Apple's CPUs.

    Returns
    -------
    pandas.DataFrame
        The columns of DEVICES; cpu_ms, the time of our operators on all performance cores, which has to be
        beaten; gpu_limit_ms, the limit by computing or memory alone; launches_ms; gpu_ms, at half of the peak
        with launches.
    """
    own = best_rows(table)
    heaviest = own.loc[own[own.stage == "vocoder"].mega_operations.idxmax()]
    faster = heaviest.limit_share * (BYTES_OVER_FLOATS if heaviest.kind in BYTE_OPERATORS else 1.0)
    found = DEVICES.copy()
    found["cpu_ms"] = operations / (faster * found.cpu_gflops * 1e9) * 1e3
    computing = operations / (found.gpu_tflops * 1e12) * 1e3
    found["gpu_limit_ms"] = np.maximum(computing, traffic_bytes / (found.memory_gb_per_s * 1e9) * 1e3)
    found["launches_ms"] = (COMMAND_US + launches * LAUNCH_US) / 1e3
    found["gpu_ms"] = found.gpu_limit_ms / ATTAINED + found.launches_ms
    return found


def window_work(vocoder: RunStage, config: EngineConfig) -> tuple[float, float, int]:
    """The work of a vocoder's window: operations, bytes of our operators' tensors and of weights, number of
    nodes."""
    inputs = {each.name for each in vocoder.theirs.graph.input}
    given = {name: value for name, value in vocoder.seen.items() if name in inputs}
    nodes, weights = vocoder.ours.graph.node, vocoder.ours.graph.initializer
    names = [name for node in filter(is_ours, nodes) for name in (*node.input, *node.output)]
    moved = sum(vocoder.seen[name].nbytes for name in names if name in vocoder.seen)
    moved += sum(numpy_helper.to_array(each).nbytes for each in weights)
    return operations_of(vocoder.theirs, given, config), float(moved), len(nodes)


def checks_of(trials: pd.DataFrame, table: pd.DataFrame, snr_db: Sequence[float]) -> list[Check]:
    """The checks: our operators compute the same; with the best set, all of them together are no slower than
    ONNX Runtime; and a kernel timed against itself is as fast as itself."""
    best = best_rows(table)
    same = ratio(trials, "same", "wall_s", best.set.iloc[0])
    return [
        Check("least_snr_db", float(min(snr_db)), low=LEAST_SNR_DB),
        Check("mean_ratio", float(np.exp(np.log(best.ratio).mean())), high=1.0),
        Check("beside_itself_ratio", same.value, low=0.85, high=1.18),
    ]


def controls(trials: pd.DataFrame, name: str) -> list[NegativeControl]:
    """The control: a kernel with half as much work again must be found slower with the whole interval."""
    slowed = ratio(trials, "slowed", "wall_s", name)
    return [NegativeControl("a kernel that takes half again as long", caught=bool(slowed.low > 1.1))]


def verdict(table: pd.DataFrame) -> str:
    """The answer in a sentence."""
    best = best_rows(table)
    mean = float(np.exp(np.log(best.ratio).mean()))
    slower = best[best.low > 1]
    left = best.loc[(best.ours_us - best.limit_us).idxmax()]
    return (
        f"{len(best)} operators take {mean:.2f} times what ONNX Runtime takes ({len(slower)} are slower: "
        f"{', '.join(slower.stage + ' ' + slower.kind) or 'none'}); most time above the limit is left in "
        f"{left.stage} {left.kind}, at {left.limit_share:.2f} of it"
    )


def figures_of(table: pd.DataFrame, paper: pd.DataFrame) -> dict[str, float]:
    """What a result keeps."""
    best = best_rows(table)
    found: dict[str, float] = {}
    for row in best.itertuples():
        stem = f"{row.stage}_{row.kind.lower()}"
        found |= {f"{stem}_ratio": row.ratio, f"{stem}_limit_share": row.limit_share}
    return found | {f"{row.device.lower()}_gpu_on_paper_ms": row.gpu_ms for row in paper.itertuples()}
