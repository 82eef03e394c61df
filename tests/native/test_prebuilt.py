"""A wheel brings our operators compiled: they are verified, chosen by processor, and easy to do without."""

from __future__ import annotations

import json
import logging
import platform
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SettingsError
from kokoro_lab.native import operators, prebuilt, toolchain
from kokoro_lab.native.operators import Native, found_compilers, native_operators
from kokoro_lab.weights.joining import sha256_of
from tests.native import fuzz, macho, wheels
from tests.native.cases import DRAWN
from tests.native.driver import Driver, build

CONFIG = EngineConfig(threads=2)
HELD = ["avx512-vnni", "avx512", "avx2-vnni", "avx2", "i8mm", "dotprod", "neon"]
needs_zig = pytest.mark.skipif(not wheels.zig_is_here(), reason="Zig is missing: `make wheels` installs it")
CASES = 4
"""Of each operator, for each instruction set."""


def write_record(library: Path, **changed: Any) -> None:
    known = {
        "bytes": library.stat().st_size,
        "sha256": sha256_of(library),
        "compiler": "zig",
        "instruction_sets": HELD,
    }
    library.with_suffix(".json").write_text(json.dumps(known | changed))


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not found_compilers():
        pytest.skip("no C++ compiler")
    return wheels.stand_in(tmp_path_factory.mktemp("stand-in"), found_compilers()[0][0])


@pytest.fixture
def shipped(stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The installation has a prebuilt library, without operators."""
    library = tmp_path / "prebuilt" / prebuilt.LIBRARY_NAME
    library.parent.mkdir()
    shutil.copy(stand_in, library)
    write_record(library)
    monkeypatch.setattr(prebuilt, "FOLDER", library.parent)
    operators._warn.cache_clear()
    return library


@pytest.fixture
def no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(operators, "find_spec", lambda name: None)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


# ------------------------------------------------------------------------------ what is chosen


@pytest.mark.parametrize("choice", ["auto", "prebuilt"])
def test_the_wheels_library_is_used_without_a_compiler(shipped: Path, no_compiler: None, choice: Any) -> None:
    found = native_operators(replace(CONFIG, native=choice))
    assert found.library == shipped
    assert re.fullmatch(r"prebuilt by zig, (avx|neon|dotprod|i8mm).*", found.build)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="avx2 is of x86-64")
def test_an_instruction_set_can_be_asked_for(shipped: Path) -> None:
    found = native_operators(replace(CONFIG, instruction_set="avx2"))
    assert found == Native(shipped, build="prebuilt by zig, avx2")


def test_an_instruction_set_that_the_processor_lacks_is_refused(shipped: Path) -> None:
    other: Any = "neon" if platform.machine() == "x86_64" else "avx2"
    with pytest.raises(SettingsError, match=f"KOKORO_INSTRUCTION_SET is {other}: this processor lacks it"):
        native_operators(replace(CONFIG, instruction_set=other))


def test_an_instruction_set_that_the_library_does_not_hold_is_refused(shipped: Path) -> None:
    write_record(shipped, instruction_sets=["avx512"])
    with pytest.raises(SettingsError, match=r"the prebuilt operators do not hold it\. Allowed: auto, avx512"):
        native_operators(replace(CONFIG, instruction_set="i8mm"))


@pytest.mark.parametrize("choice", ["auto", "prebuilt", "build"])
def test_an_instruction_set_is_refused_where_nothing_is_prebuilt(choice: Any) -> None:
    with pytest.raises(SettingsError, match="only prebuilt operators can be told so"):
        native_operators(replace(CONFIG, native=choice, instruction_set="avx2"))


def test_what_is_built_here_can_be_asked_for(shipped: Path, library: Path) -> None:
    assert native_operators(replace(CONFIG, native="build")) == Native(library, build="built on this machine")


def test_an_installation_without_it_says_so(no_compiler: None) -> None:
    assert native_operators(replace(CONFIG, native="prebuilt")) == Native(
        None, "this installation has no prebuilt operators"
    )


def test_a_report_says_which_operators_computed(shipped: Path) -> None:
    found = native_operators(CONFIG)
    details = {"native_operators": str(found), "native_build": found.build}
    assert toolchain.build_of(CONFIG, details).operators == found.build
    assert toolchain._prebuilt() == prebuilt.record()


# ------------------------------------------------------------------------------ what is damaged


@pytest.mark.parametrize("damaged", ["library", "shorter", "record", "gone", "no library"])
def test_a_damaged_library_is_not_used_and_that_is_said(
    shipped: Path, library: Path, damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    if damaged == "library":
        flip(shipped)
    elif damaged == "shorter":
        shipped.write_bytes(shipped.read_bytes()[:-1])
    elif damaged == "record":
        shipped.with_suffix(".json").write_text("{")
    elif damaged == "gone":
        shipped.unlink()
    else:
        shipped.write_text("nothing that can be loaded")
        write_record(shipped)
    with caplog.at_level(logging.WARNING):
        found = native_operators(CONFIG)
        native_operators(CONFIG)
    assert found.library == library
    said = "prebuilt operators are not used: operators."
    assert found.build.startswith(f"built on this machine; {said}")
    assert caplog.text.count(said) == 1


def test_without_a_compiler_it_is_spoken_without_them(shipped: Path, no_compiler: None) -> None:
    flip(shipped)
    assert str(native_operators(CONFIG)).startswith(
        "none: prebuilt operators are not used: operators.so does not"
    )
    assert "no C++ compiler was found" in native_operators(CONFIG).reason


# ------------------------------------------------------------------------------ how it is made


def test_what_a_set_defines_gets_a_name_of_its_own() -> None:
    script = wheels.script()
    assembly = b"""
	.section .text._Z1fv,"axG",@progbits,_Z1fv,comdat
	.weak	_Z1fv
_Z1fv:
	callq	_Z1gv@PLT
	.globl	_Znwm
.Llocal:
	jmp	.Llocal
"""
    mine = script.seen_by_others(assembly)
    assert mine == {b"_Z1fv"}
    made = script.renamed(assembly, mine | {b"_Z1gv"}, "_avx2")
    assert b'"axG",@progbits,_Z1fv_avx2,comdat' in made
    assert b"\n_Z1fv_avx2:\n\tcallq\t_Z1gv_avx2@PLT" in made
    assert b".globl\t_Znwm\n" in made


def test_each_compiler_is_tried_with_the_flags_that_it_takes(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one fails, the second one builds."""
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho 'error: broken' >&2; exit 1\n")
    broken.chmod(0o755)
    whole = (found_compilers()[0][0],)
    tried: list[operators.Command] = []
    monkeypatch.setattr(operators, "found_compilers", lambda: [(str(broken),), whole])
    real = operators._build

    def built(compiler: operators.Command, into: Path) -> str:
        tried.append(compiler)
        if compiler == whole:
            for path in (into, into.with_suffix(".json")):
                shutil.copy(library.with_suffix(path.suffix), path)
            return ""
        return real(compiler, into)

    monkeypatch.setattr(operators, "_build", built)
    assert native_operators(replace(CONFIG, home=tmp_path / "home")).library is not None
    assert tried == [(str(broken),), whole]


@pytest.mark.test_all
@pytest.mark.parametrize("name", operators.COMPILERS)
def test_each_compiler_builds_operators_of_the_same_bits(
    name: str, tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "COMPILERS", (name,))
    compilers = found_compilers()
    if not compilers:
        pytest.skip(f"{name} is not installed")
    made = tmp_path / "operators.so"
    assert operators._build(compilers[0], made) == ""
    from tests.native.test_operators import feed, session

    for operator, case in cases():
        theirs, ours = (session(case, path).run(None, feed(case)) for path in (library, made))
        for expected, found in zip(theirs, ours, strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=operator)


def cases() -> Iterator[tuple[str, Any]]:
    for operator, drawn in DRAWN.items():
        rng = np.random.default_rng(zlib.crc32(operator.encode()))
        for _ in range(CASES):
            yield operator, drawn(rng).case


# ------------------------------------------------------------------------------ what is in the wheels


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Platform → its library, compiled here by Zig."""
    script = wheels.script()
    folder = tmp_path_factory.mktemp("compiled")
    return {name: script.compile_operators(to, folder / name) for name, to in script.PLATFORMS.items()}


@pytest.mark.test_long
@needs_zig
@pytest.mark.parametrize("name", ["linux-x86_64", "linux-aarch64"])
def test_linux_from_glibc_2_28_on_can_load_it(compiled: dict[str, Path], name: str) -> None:
    def told(*command: str) -> str:
        return subprocess.run(
            [*command, str(compiled[name])], capture_output=True, text=True, check=True
        ).stdout

    symbols = told("readelf", "--dyn-syms", "--wide")
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", symbols)}
    assert versions
    assert max(versions) <= (2, 28)
    assert "GLIBCXX" not in symbols
    needed = re.findall(r"NEEDED.*\[(.+)\]", told("readelf", "--dynamic"))
    assert set(needed) <= {
        *("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"),
        *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"),
    }
    seen = [line.split()[-1] for line in symbols.splitlines() if " GLOBAL " in line and " UND " not in line]
    assert sorted(seen) == ["RegisterCustomOps", "kokoro_brake", "kokoro_choose", "kokoro_instruction_sets"]
    # Code that ran as the library is loaded might be of a set that the processor lacks
    assert "INIT_ARRAY" not in told("readelf", "--dynamic")


@pytest.mark.test_long
@needs_zig
def test_macos_from_11_on_can_load_it(compiled: dict[str, Path]) -> None:
    found = macho.read(compiled["macos-arm64"])
    assert (found.architecture, found.kind) == (macho.ARM64, macho.DYNAMIC_LIBRARY)
    assert (found.platform, found.least_version) == (macho.MACOS, (11, 0))
    assert found.name == "@rpath/operators.so"
    assert found.needs == ["/usr/lib/libSystem.B.dylib"]
    assert found.signature_flags & macho.AD_HOC
    assert found.signed
    assert not found.sections & {"__mod_init_func", "__init_offsets"}
    ours = {"_RegisterCustomOps", "_kokoro_brake", "_kokoro_choose", "_kokoro_instruction_sets"}
    assert ours <= found.exports
    # C++ has its allocation replaceable, and the linker adds two names of its own
    rest = found.exports - ours - {"___dso_handle", "__mh_dylib_header"}
    assert all(re.match(r"__Z(nw|na|dl|da)", name) for name in rest)


ON_ARM64 = ("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", "-cpu")
PROCESSORS = {
    "avx512-vnni": (),
    "avx512": (),
    "avx2-vnni": (),
    "avx2": ("qemu-x86_64-static", "-cpu", "Haswell"),
    "neon": (*ON_ARM64, "cortex-a53"),
    "dotprod": (*ON_ARM64, "cortex-a76"),
    "i8mm": (*ON_ARM64, "max"),
}
"""Instruction set → what emulates a processor with it and nothing better; else this one is taken."""


@pytest.mark.test_long
@needs_zig
@pytest.mark.parametrize("instruction_set", PROCESSORS)
def test_each_instruction_set_makes_the_same_bits(
    compiled: dict[str, Path], instruction_set: str, tmp_path: Path
) -> None:
    """As what this machine builds for itself."""
    on_arm = instruction_set in wheels.script().SETS["aarch64"]
    compiler = "aarch64-linux-gnu-g++" if on_arm else "g++"
    emulator = PROCESSORS[instruction_set]
    missing = [name for name in (compiler, *emulator[:1]) if shutil.which(name) is None]
    if missing or platform.machine() != "x86_64":
        pytest.skip(f"not run: {instruction_set} ({', '.join(missing) or 'this is no x86-64'})")
    library = compiled["linux-aarch64" if on_arm else "linux-x86_64"]
    candidate = wheels.program(tmp_path, library, instruction_set, compiler, emulator)
    if subprocess.run([candidate], stdin=subprocess.DEVNULL, check=False).returncode == wheels.LACKS:
        pytest.skip(f"not run: this processor lacks {instruction_set}")
    with Driver(build(tmp_path, "native", ("-O3",))) as reference, Driver(candidate) as driver:
        for operator, case in cases():
            expected, found = reference.run(case), driver.run(case)
            assert found.code == 0, found.message
            for theirs, ours in zip(expected.outputs, found.outputs, strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=operator)
        for operator in DRAWN:
            fuzz.check(driver, operator, 1)
