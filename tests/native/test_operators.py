"""Whatever an operator of ours is given, it answers or refuses: it never brings the process down."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import OutOfMemory
from kokoro_lab.graphs.fast_fir import FastFir, Output, Product, Term, packed
from kokoro_lab.graphs.native_passes import NATIVE_DOMAIN
from kokoro_lab.native.operators import FLAGS, OPERATORS, SOURCES, found_compilers, processor_flags, sources
from kokoro_lab.server.http.errors import status_of
from kokoro_lab.sessions import arenas, providers
from kokoro_lab.sessions.arenas import out_of_memory
from kokoro_lab.sessions.guarded_session import RAISED
from kokoro_lab.sessions.providers import make_session
from tests.native import fuzz
from tests.native.cases import DRAWN, Values, broken
from tests.native.driver import PROCESSORS, Case, Driver, build

CONFIG = EngineConfig(threads=2)
BUDGET_S = float(os.environ.get("KOKORO_FUZZ_S", "180"))
"""Of the long test, over all processors."""


def session(case: Case, library: Path) -> ort.InferenceSession:
    """The operator alone, all of whose inputs are given when it runs."""
    names = ["" if value is None else f"input{i}" for i, value in enumerate(case.inputs)]
    count = 2 if case.operator == "Statistics" else 1
    outputs = [f"output{i}" for i in range(count)]
    graph = helper.make_graph(
        [helper.make_node(case.operator, names, outputs, domain=NATIVE_DOMAIN)],
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), None)
            for name, value in zip(names, case.inputs, strict=True)
            if value is not None
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(NATIVE_DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return make_session(model.SerializeToString(), CONFIG, library=library)


def feed(case: Case) -> dict[str, Values]:
    return {f"input{i}": np.asarray(value) for i, value in enumerate(case.inputs) if value is not None}


def test_each_operator_has_cases() -> None:
    assert set(DRAWN) == set(OPERATORS)


@pytest.mark.parametrize("operator", OPERATORS)
def test_right_inputs_are_answered_and_wrong_ones_refused(library: Path, operator: str) -> None:
    rng = np.random.default_rng(zlib.crc32(operator.encode()))
    refused = 0
    for _ in range(4):
        right = DRAWN[operator](rng)
        running = session(right.case, library)
        for _ in range(12):
            case = broken(right.case, rng, types=False)
            try:
                session(case, library).run(None, feed(case))
            except RAISED:
                refused += 1
        made = [np.asarray(value) for value in running.run(None, feed(right.case))]
        fuzz.compare(right, made, operator)
    assert refused


def test_what_is_refused_is_named(library: Path) -> None:
    rng = np.random.default_rng(1)
    case = DRAWN["FastConv"](rng).case
    inputs = list(case.inputs)
    inputs[3] = np.zeros(3, np.float32)
    wrong = replace(case, inputs=tuple(inputs))
    with pytest.raises(RAISED, match=r"FastConv.*input 3 has 3 values: must be \d+"):
        session(wrong, library).run(None, feed(wrong))


EMPTY_WINDOWS = """
import numpy as np
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.fast_fir import FastFir, packed
from kokoro_lab.native.operators import native_operators
from tests.native.driver import Case
from tests.native.test_operators import feed, session

plan, weights = packed(FastFir.of(np.ones((8, 1, 11), np.float32), 5, 1))
one, around = np.ones(1, np.float32), np.array([1, 0])
x, bias = np.ones((1, 1, 50), np.float32), np.ones(8, np.float32)
for frame in (0, 3, 50):
    case = Case("SnakeConv", (x, plan, weights, bias, one, one, np.array([frame, frame]), around))
    assert not session(case, native_operators(EngineConfig()).library).run(None, feed(case))[0].any()
"""


def test_a_window_of_which_nothing_is_asked_for_is_empty(library: Path) -> None:
    """In a process of its own, which once crashed."""
    done = subprocess.run(
        [sys.executable, "-c", EMPTY_WINDOWS],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------ plans


def fir(**changed: object) -> FastFir:
    """A convolution of one product of one tap, with something changed."""
    taps = {0: np.ones((8, 1), np.float32)}
    whole: dict[str, object] = {
        "phases": 1,
        "dilation": 1,
        "products": (Product((Term(0, 0, 1),), taps),),
        "outputs": (Output(0, ((0, 1),)),),
    }
    return FastFir(**(whole | changed))  # type: ignore[arg-type]


def many_products(count: int) -> FastFir:
    taps = {0: np.ones((8, 1), np.float32)}
    products = tuple(Product((Term(0, 0, 1),), taps) for _ in range(count))
    return fir(products=products, outputs=(Output(0, tuple((k, 1) for k in range(count))),))


def many_terms(count: int) -> FastFir:
    taps = {0: np.ones((8, 1), np.float32)}
    return fir(products=(Product(tuple(Term(0, i, 1) for i in range(count)), taps),))


def run_plan(plan: Values, weights: Values, library: Path) -> Values:
    x = np.ones((1, 1, 50), np.float32)
    case = Case("FastConv", (x, plan, weights, np.zeros(8, np.float32)))
    made: Values = session(case, library).run(None, feed(case))[0]
    return made


@pytest.mark.parametrize("count", [7, 8, 40])
def test_there_is_room_for_as_many_products_as_a_plan_has(library: Path, count: int) -> None:
    np.testing.assert_array_equal(run_plan(*packed(many_products(count)), library), count)


def test_six_terms_are_summed_and_a_seventh_is_refused(library: Path) -> None:
    np.testing.assert_array_equal(run_plan(*packed(many_terms(6)), library)[..., :40], 6)
    with pytest.raises(RAISED, match="7 terms: must be 1 to 6"):
        run_plan(*packed(many_terms(7)), library)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (fir(phases=3, outputs=(Output(0, ()),) * 3), "phases"),
        (fir(phases=8, outputs=(Output(0, ()),) * 8), "phases"),
        (fir(products=(Product((Term(1, 0, 1),), {0: np.ones((8, 1), np.float32)}),)), "phase"),
        (fir(products=(Product((Term(0, -1, 1),), {0: np.ones((8, 1), np.float32)}),)), "ahead|advance"),
        (fir(outputs=(Output(0, ((1, 1),)),)), "product"),
        (fir(outputs=(Output(70_000, ((0, 1),)),)), "shift"),
    ],
)
def test_what_there_is_no_code_for_is_refused(library: Path, wrong: FastFir, said: str) -> None:
    with pytest.raises(RAISED, match=said):
        run_plan(*packed(wrong), library)


# ------------------------------------------------------------------------------ statuses and memory


def test_a_row_of_a_product_hides_nothing_that_is_not_a_number(library: Path) -> None:
    case = DRAWN["QuantProduct"](np.random.default_rng(7)).case
    x = np.ones((3, case.inputs[4].size), np.float32)  # type: ignore[union-attr]
    x[1, 0] = np.nan
    wrong = replace(case, inputs=(x, *case.inputs[1:]))
    (made,) = session(wrong, library).run(None, feed(wrong))
    assert np.isnan(made[1]).all()
    assert np.isfinite(made[[0, 2]]).all()


def test_a_status_that_nobody_looks_at_does_not_compile(tmp_path: Path, library: Path) -> None:
    source = tmp_path / "careless.cpp"
    careless = '#include "operator.h"\nvoid careless(ort::Table t) { %s ort::call(t, ort::DATA); }\n'
    compiler = found_compilers()[0]
    for used, compiles in (("(void)!", True), ("", False)):
        source.write_text(careless % used)
        command = [*compiler, *FLAGS, "-fsyntax-only", f"-I{SOURCES}", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is compiles, done.stderr


def test_there_is_one_way_to_the_interface() -> None:
    """Operators ask an `ort::Call`; nothing else touches the table, or lets an exception out."""
    for path in sources():
        text = path.read_text()
        if path.name != "ort_abi.h":
            assert not re.search(r"\b(t|table_?)\[", text), path.name
        if path.name not in ("ort_abi.h", "operator.h", "register.cpp"):
            assert "call(" not in text.replace("::compute(const ort::Call &call)", ""), path.name
            assert not re.search(r"ort::(call|must|make_status)\b", text), path.name
        if path.name != "operator.h":
            assert not re.search(r"\.(compute|compute_v2|create) = ", text), path.name


OUT_OF_MEMORY = """
import sys
import numpy as np
from dataclasses import replace
from kokoro_lab.errors import OutOfMemory
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.native.operators import native_operators
from tests.native import test_operators as operators
from tests.native.cases import DRAWN

operators.CONFIG = replace(operators.CONFIG, memory_arena_size_mb=8)
library = native_operators(EngineConfig()).library
case = DRAWN[sys.argv[1]](np.random.default_rng(3)).case
wide = [np.zeros((1, case.inputs[0].shape[1], 2_000_000), np.float32), *case.inputs[1:]]
if len(wide) > 8:
    wide[6:9] = [None] * 3
running = operators.session(replace(case, inputs=tuple(wide)), library)
for _ in range(3):
    try:
        running.run(None, operators.feed(replace(case, inputs=tuple(wide))))
    except OutOfMemory as error:
        print(error)
right = operators.feed(case)
operators.session(case, library).run(None, right)
print("still here")
"""


@pytest.mark.parametrize("operator", ["FastConv", "SnakeConv", "Norm"])
def test_an_arena_that_is_full_is_an_error_again_and_again(library: Path, operator: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OUT_OF_MEMORY, operator],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    *errors, last = done.stdout.splitlines()
    assert last == "still here"
    assert len(errors) == 3
    assert all(line.startswith("KOKORO_MEMORY_ARENA_SIZE_MB is 8: not enough") for line in errors)


def test_a_model_that_does_not_fit_is_not_said_to_be_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """In ONNX Runtime's words, as `tests/installed/test_out_of_memory.py` meets them."""

    def full(*arguments: object, **options: object) -> None:
        raise Fail(
            "Exception during initialization: Available memory of 0 is smaller than requested bytes of 9"
        )

    monkeypatch.setattr(providers, "ShrinkingSession", full)
    monkeypatch.setattr(arenas, "_arena_mb", 16)
    with pytest.raises(OutOfMemory) as caught:
        make_session(b"", replace(CONFIG, variant="fp32"))
    assert str(caught.value) == (
        "KOKORO_MEMORY_ARENA_SIZE_MB is 16: not enough to load the model, which takes at least 17 MiB. "
        "Allowed: 768 for one request at a time, or 0 for no bound. Set it to that, or leave it out."
    )


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("Failed to allocate memory for requested buffer of size 8"),
        RuntimeError("Status Message: Failed to allocate memory inside an operator"),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_memory_of_the_machine_that_runs_out_names_no_arena(error: Exception) -> None:
    found = out_of_memory(error, "speak this")
    assert found is not None
    assert (found.code, found.field) == ("out_of_memory", None)
    assert status_of(found) == 503


def test_nothing_else_is_taken_for_it() -> None:
    assert (
        out_of_memory(RuntimeError("Status Message: input 3 has 3 values: must be 8"), "speak this") is None
    )


# ------------------------------------------------------------------------------ on each processor


def skip_unless_here(processor: str) -> None:
    needed = {"avx2": "avx2", "avx512": "avx512vl"}.get(processor)
    if needed and needed not in processor_flags().split():
        pytest.skip(f"this processor has no {processor}")


@pytest.mark.test_all
@pytest.mark.parametrize("processor", PROCESSORS)
def test_no_sum_of_bytes_saturates(tmp_path: Path, processor: str) -> None:
    """Two products of the largest bytes do not fit into the 16 bits in which some processors add them.

    Four products of smaller ones fit only sometimes: of the last tile, hardly two steps may be added.
    """
    rng = np.random.default_rng(0)
    out, channels, taps, length = 24, 32, 3, 100
    weights = rng.choice([-128, -127, -65, -64, 0, 64, 65, 127], (out, channels, taps)).astype(np.int8)
    weights[8:16] = rng.choice([-65, -33, -1, 0, 1, 33, 65], (8, channels, taps))
    weights[16:] = rng.choice([0, 100], (8, channels, taps))
    weights[16:, 1::2] = 0
    x = rng.choice([0, 1, 254, 255], (channels, length)).astype(np.float32)
    around = np.pad(x, ((0, 0), (1, 1))).astype(np.int64)
    right = sum(weights[:, :, tap].astype(np.int64) @ around[:, tap : tap + length] for tap in range(taps))
    tiles = weights.reshape(out // 8, 8, channels // 4, 4, taps).transpose(0, 2, 4, 1, 3)
    sums = np.stack([np.zeros(out), weights.sum((1, 2), np.int64)]).astype(np.int32)
    steps = np.stack([np.ones(channels), np.zeros(channels)]).astype(np.float32)
    outputs = np.stack([np.ones(out), np.zeros(out)]).astype(np.float32)
    plan = np.array([out, channels, taps, 1])
    skip_unless_here(processor)
    with Driver(build(tmp_path, processor, sanitizers=("-O1",))) as driver:
        made = driver.run(Case("QuantConv", (x[None], plan, tiles, sums, steps, outputs)))
    assert np.array_equal(made.outputs[0][0], right)


# ------------------------------------------------------------------------------ under sanitizers


@pytest.mark.test_long
@pytest.mark.parametrize("processor", PROCESSORS)
def test_no_sanitizer_finds_anything(tmp_path: Path, library: Path, processor: str) -> None:
    """For KOKORO_FUZZ_S seconds in all, 180 if it is not set; first what was found before."""
    skip_unless_here(processor)
    with Driver(build(tmp_path, processor)) as driver:
        for operator, seed in fuzz.seeds():
            fuzz.check(driver, operator, seed)
        found = fuzz.rounds(driver, BUDGET_S / len(PROCESSORS), first=1)
    print(processor, dict(found))
    assert found["refused"]
    assert found["failed allocations"]
