"""A folder of results as runs leave it: some passed, one failed, one crashed, one is under way."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from kokoro_lab.containers.pcm import wav_header
from kokoro_lab.containers.plain_json import write_json

GATE, FIRST, SECOND, BENCH = "30_loudness_gate", "20260101T100000Z-aa01", "20260102T100000Z-aa02", "bench"
HOSTILE = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def record(**changes: Any) -> dict[str, Any]:
    """A result of the gate that passed."""
    good = {
        "verdict": "passed",
        "failures": [],
        "checks": [
            check("stream_true_peak_dbtp", -1.2, high=-1.0),
            check("loudest_file_lufs", -16, -17, -15),
        ],
        "controls": [{"name": "3 dB louder", "caught": True}],
        "figures": {
            "clips_count": 2,
            "pesq_mean": 4.5,
            "pesq_mean_low": 4.4,
            "pesq_mean_high": 4.6,
            "rtf": 0.2,
        },
        "parameters": {"voices": "af_heart", "texts": 2},
        "run_s": 11.2,
        "variant": "int8",
        "model_sha256": "5a" * 32,
        "git": {"commit": COMMIT, "dirty": False},
        "machine": {"cpu": "a processor", "cores": 2},
        "versions": {"onnxruntime": "1.31.1"},
    }
    return good | changes


def check(
    name: str, value: float | None, low: float | None = None, high: float | None = None
) -> dict[str, Any]:
    passed = value is not None and (low is None or value >= low) and (high is None or value <= high)
    return {"name": name, "value": value, "low": low, "high": high, "passed": passed}


def regression() -> dict[str, Any]:
    """The gate, with a peak beyond its limit; RTF is better, and PESQ within the intervals."""
    clips = [
        {"name": "loud", "text": "Too loud.", "candidate": "audio/loud.wav", "figures": {}, "badness": 2.0},
        {"name": "calm", "text": "As it was.", "candidate": "audio/calm.wav", "figures": {}, "badness": 1.0},
    ]
    peak = check("stream_true_peak_dbtp", -0.4, high=-1.0)
    return record(
        verdict="failed",
        failures=["stream_true_peak_dbtp = -0.4"],
        checks=[check("loudest_file_lufs", -15.9, -17, -15), peak],
        figures={
            "clips_count": 2,
            "pesq_mean": 4.45,
            "pesq_mean_low": 4.35,
            "pesq_mean_high": 4.55,
            "rtf": 0.1,
        },
        parameters={"voices": "af_heart", "texts": 3},
        git={"commit": "fedcba9876543210fedcba9876543210fedcba98", "dirty": True},
        clips=clips,
    )


def sound(path: Path, hz: float, duration_s: float = 0.3) -> None:
    """A tone as 16-bit WAV."""
    samples = (8000 * np.sin(np.arange(int(24_000 * duration_s)) * hz * 2 * np.pi / 24_000)).astype("<i2")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(wav_header(24_000, samples.nbytes) + samples.tobytes())


def plant(folder: Path) -> Path:
    """The gate twice, of which the second failed; one that crashed, two that did not end, one under way,
    a benchmark, a sweep, all gates together, one that cannot be read, and one whose texts are hostile."""
    first, second = folder / GATE / FIRST, folder / GATE / SECOND
    write_json(first / "result.json", record())
    write_json(second / "result.json", regression())
    for run, hz in ((first, 300), (second, 400)):
        (run / "report.html").write_text("<!doctype html><title>A report</title>")
        sound(run / "audio/calm.wav", 200)
        sound(run / "audio/loud.wav", hz)
    crash = {"message": "ZeroDivisionError: division by zero", "parameters": {"texts": 1}}
    write_json(folder / "31_perceptual_gate/20260103T100000Z-aa03/crash.json", crash)
    ctrl_c = {"verdict": "interrupted", "message": "Interrupted after 12 s.", "parameters": {}, "run_s": 12.0}
    write_json(folder / "31_perceptual_gate/20260104T100000Z-aa04/crash.json", ctrl_c)
    killed = folder / "41_soak/20260105T100000Z-aa05"
    write_json(killed / "begun.json", begun(pid=2**22 + 1))
    sound(killed / "audio/half.wav", 200)
    write_json(folder / "41_soak/20260106T100000Z-aa06/begun.json", begun())
    measured = {"summary": {"kokoro-lab": {"rtf": {"p50": 0.2}}}, "asked": {"trials": 1}}
    write_json(folder / BENCH / "20260107T100000Z-aa07/result.json", measured)
    rows = [{"number": 0, "verdict": "passed"}, {"number": 1, "verdict": "failed"}]
    write_json(folder / GATE / "sweep-20260108T100000Z-aa08/sweep.json", {"swept": ["texts"], "runs": rows})
    gates = [{"gate": GATE, "verdict": "passed"}]
    write_json(folder / "gates/20260109T100000Z-aa09/summary.json", {"fast": True, "gates": gates})
    broken = folder / "42_faults/20260110T100000Z-aa10/result.json"
    broken.parent.mkdir(parents=True)
    broken.write_text('{"verdict": ')
    odd = record(verdict="failed", checks=[check(HOSTILE, 1, high=0)], parameters={"voices": HOSTILE})
    write_json(folder / "20_quantization_abx/20260111T100000Z-aa11/result.json", odd)
    return folder


def begun(**changes: Any) -> dict[str, Any]:
    """What a runner writes when a run begins; of this process, unless changed."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "notebook": "41_soak",
        "parameters": {"minutes": 5},
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started_at": now,
    } | changes
