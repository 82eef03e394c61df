"""DNSMOS: the quality of a recording without a reference, by a model of listeners."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import soxr

from kokoro_lab.extras import require
from kokoro_lab.metrics.recordings import require_recording

Samples = npt.NDArray[np.float32]

DNSMOS_RATE_HZ = 16_000
DNSMOS_SAMPLES = 144_160
"""9.01 s: the length that the model hears at once. Shorter recordings are repeated; longer ones are heard in
windows that begin each second."""
OVERALL = np.polynomial.Polynomial((0.04602535, 1.11546468, -0.06766283))
"""Maps the network's third output to the published scale."""


def dnsmos(samples: Samples, sample_rate_hz: int) -> float:
    """Overall quality without a reference, 1 to 5, higher is better.

    Source: DNSMOS P.835 (Reddy et al. 2022), the model of the `speechmos` package. The model does not notice
    clicks, nor words that are missing. A recording is judged once, however often it is compared.

    Raises
    ------
    ParameterError
        The recording has no samples, more than one channel, or samples that are not finite.
    MissingExtra
        The extra `quality` is not installed.
    """
    require_recording(samples)
    return _opinion(samples.astype(np.float32).tobytes(), sample_rate_hz)


@lru_cache(maxsize=32)
def _opinion(samples: bytes, rate_hz: int) -> float:
    heard = soxr.resample(np.frombuffer(samples, np.float32), rate_hz, DNSMOS_RATE_HZ, quality="VHQ")
    heard = np.tile(heard, -(-DNSMOS_SAMPLES // len(heard))) if len(heard) < DNSMOS_SAMPLES else heard
    session = _session()
    starts = range(0, len(heard) - DNSMOS_SAMPLES + 1, DNSMOS_RATE_HZ)
    raw = [session.run(None, {"input_1": heard[None, at : at + DNSMOS_SAMPLES]})[0][0][2] for at in starts]
    return float(np.mean(OVERALL(np.array(raw))))


@cache
def _session() -> ort.InferenceSession:
    require("quality", "speechmos")
    spec = find_spec("speechmos")
    assert spec is not None
    assert spec.origin is not None
    # Only the file is used: importing the package would need further packages that it does not declare
    model = Path(spec.origin).parent / "dnsmos_models" / "sig_bak_ovr.onnx"
    return ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
