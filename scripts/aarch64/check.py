"""Runs on the ARM64 side of `run.sh`, with NumPy and ONNX Runtime alone: computes the prepared cases."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort

LEAST_DB = {"vocoder_float": 25.0, "vocoder_int8": 15.0}
"""Least SNR with ONNX Runtime's operators alone. Their STFT rounds differently on ARM64, which turns some
phases from pi to minus pi; ours does not. Before integers, another last bit of a float sometimes becomes
another byte, which changes later bytes. So two machines that differ in one bit end as far apart as either is
from floats. With our operators, every float before integers is therefore the same to the last bit."""
ALL_OTHERS_LEAST_DB = 90.0
NOT_COMPARED = ("prosody", "prosody_ours", "excitation", "excitation_ours")
"""Outputs that are compared on one machine only, since a rounding of F0 adds up in the phase of the voice."""
PROMISED = ("prosody_int8_ours", "trunk_int8_ours")
"""Outputs that are the same on every machine, to the last bit."""
SAME_BITS = ("prosody", "excitation")
"""Outputs that are the same with our operators and with ONNX Runtime's, on any machine."""
STOCK = (*SAME_BITS, "vocoder_float", "vocoder_int8")
"""Cases with ONNX Runtime's operators alone, which are computed once for all sets of ours."""


def main(folder: Path, library: str) -> int:
    """`library` is a file in `folder`, optionally followed by a colon and the instruction set to use."""
    failed, all_made = 0, {}
    name, _, instruction_set = library.partition(":")
    if instruction_set and not ctypes.CDLL(str(folder / name)).kokoro_choose(instruction_set.encode()):
        sys.stdout.write(f"not run: this processor lacks {instruction_set}\n")
        return 0
    for path in sorted(folder.glob("*.onnx")):
        if instruction_set and path.stem in STOCK:
            continue
        options = ort.SessionOptions()
        options.register_custom_ops_library(str(folder / name))
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        case = np.load(path.with_suffix(".npz"))
        feed = {str(name): case[f"input{k}"] for k, name in enumerate(case["names"])}
        (made,) = session.run(None, feed)
        all_made[path.stem] = made
        if path.stem in NOT_COMPARED:
            continue
        difference = float(((made.astype(np.float64) - case["made"]) ** 2).sum())
        energy = float((case["made"].astype(np.float64) ** 2).sum())
        agreement_db = float("inf") if difference == 0 else 10 * np.log10(energy / difference)
        least_db = float("inf") if path.stem in PROMISED else LEAST_DB.get(path.stem, ALL_OTHERS_LEAST_DB)
        passed = agreement_db >= least_db
        failed += not passed
        sys.stdout.write(f"{'pass' if passed else 'FAIL'}  {path.stem}: {agreement_db:.1f} dB\n")
    for name in () if instruction_set else SAME_BITS:
        same = np.array_equal(all_made[name], all_made[f"{name}_ours"])
        failed += not same
        sys.stdout.write(f"{'pass' if same else 'FAIL'}  {name}: {'' if same else 'not '}to the last bit\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
