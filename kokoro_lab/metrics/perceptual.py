"""Perceptual distances (PESQ, STOI, spectral) of two aligned recordings of the same speech.

All of them need a reference and a candidate of the same length and timing: they measure changes of the signal
path, not another reading of the text.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import soxr

from kokoro_lab.errors import ParameterError
from kokoro_lab.extras import imported
from kokoro_lab.metrics.mel import Values, frame_power, mel_filters
from kokoro_lab.metrics.recordings import require_recording

pesq = imported("pesq", extra="lab")
pystoi = imported("pystoi", extra="lab")

Samples = npt.NDArray[np.float32]

PESQ_RATE_HZ = 16_000
PESQ_CEILING = 4.644
"""The PESQ-WB of a recording against itself."""
PESQ_LOWEST = 1.0
PESQ_LEADS_S = (0.0, 0.010, 0.020, 0.030, 0.040)
"""Lengths of silence that are put before both recordings, in turn."""
SHORTEST_S = 0.4

LSD_WINDOW_S, LSD_HOP_S = 0.032, 0.008
LSD_FLOOR_DB = -80.0
MEL_BANDS = 80


def pesq_wb(reference: Samples, candidate: Samples, sample_rate_hz: int) -> float:
    """Wide-band PESQ, 1 to 4.644, higher is better.

    Source: ITU-T P.862.2, by the `pesq` package; both signals are resampled to 16 kHz. P.862 looks for delays
    between the two. Here no signal is delayed, but in about one utterance of a hundred P.862 takes a part of
    it for delayed. One such score was 3.87 instead of 4.59, and 4.59 again if both signals began 10 ms later.
    So the result is the median over starts 10 ms apart (`PESQ_LEADS_S`); a true difference changes all of
    them alike. A candidate so destroyed that P.862 finds no utterance has the lowest score, 1.

    Raises
    ------
    ParameterError
        The recordings have different lengths, are shorter than 0.4 s, or have samples that are not finite.
    pesq.NoUtterancesError
        The reference by itself has no utterance.
    """
    pair = [_resampled(s, sample_rate_hz) for s in _checked(reference, candidate, sample_rate_hz)]
    leads = (round(lead_s * PESQ_RATE_HZ) for lead_s in PESQ_LEADS_S)
    try:
        scores = [pesq.pesq(PESQ_RATE_HZ, *(np.pad(s, (n, 0)) for s in pair), "wb") for n in leads]
    except pesq.NoUtterancesError:
        pesq.pesq(PESQ_RATE_HZ, pair[0], pair[0], "wb")
        return PESQ_LOWEST
    return float(np.median(scores))


def stoi(reference: Samples, candidate: Samples, sample_rate_hz: int) -> float:
    """Short-time objective intelligibility, up to 1, higher is better.

    Source: Taal et al. 2011, by the `pystoi` package. Frames that are silent in the reference do not count.

    Raises
    ------
    ParameterError
        In the cases in which `pesq_wb` raises it.
    """
    reference, candidate = _checked(reference, candidate, sample_rate_hz)
    return float(pystoi.stoi(reference, candidate, sample_rate_hz))


def log_spectral_distance_db(reference: Samples, candidate: Samples, sample_rate_hz: int) -> float:
    """Mean over frames of the RMS difference of log power spectra, in dB, lower is better.

    Source: Gray & Markel 1976. Power more than 80 dB below the reference's loudest bin does not count.

    Raises
    ------
    ParameterError
        In the cases in which `pesq_wb` raises it.
    """
    reference, candidate = _checked(reference, candidate, sample_rate_hz)
    return _distance_db(*(_power(s, sample_rate_hz) for s in (reference, candidate)))


def log_mel_distance_db(reference: Samples, candidate: Samples, sample_rate_hz: int) -> float:
    """Mean over frames of the RMS difference of log power in 80 mel bands, in dB, lower is better.

    Like `log_spectral_distance_db`, but with the ear's resolution: differences between neighbouring bins of
    one band do not count. Bands more than 80 dB below the reference's loudest band do not count, either.

    Source: mel bands after Slaney (1998), distance as in `log_spectral_distance_db`.

    Raises
    ------
    ParameterError
        In the cases in which `pesq_wb` raises it.
    """
    reference, candidate = _checked(reference, candidate, sample_rate_hz)
    bands = mel_filters(sample_rate_hz, round(LSD_WINDOW_S * sample_rate_hz), MEL_BANDS)
    return _distance_db(*(_power(s, sample_rate_hz) @ bands for s in (reference, candidate)))


def signal_to_difference_db(reference: Samples, candidate: Samples) -> float:
    """Energy of the reference divided by energy of the difference, in dB; infinite if both recordings are
    equal."""
    reference, candidate = _checked(reference, candidate, 0)
    difference = float(((reference.astype(np.float64) - candidate) ** 2).sum())
    energy = float((reference.astype(np.float64) ** 2).sum())
    return float("inf") if difference == 0 else 10 * float(np.log10(energy / difference))


def _power(samples: Samples, sample_rate_hz: int) -> Values:
    size, hop = round(LSD_WINDOW_S * sample_rate_hz), round(LSD_HOP_S * sample_rate_hz)
    return frame_power(samples, np.hanning(size), hop)


def _distance_db(reference: Values, candidate: Values) -> float:
    floor = reference.max() * 10 ** (LSD_FLOOR_DB / 10)
    difference = 10 * np.log10(np.maximum(reference, floor) / np.maximum(candidate, floor))
    return float(np.sqrt((difference**2).mean(1)).mean())


def _resampled(samples: Samples, sample_rate_hz: int) -> Samples:
    resampled: Samples = soxr.resample(samples, sample_rate_hz, PESQ_RATE_HZ, quality="VHQ")
    return resampled


def _checked(reference: Samples, candidate: Samples, sample_rate_hz: int) -> tuple[Samples, Samples]:
    if reference.shape != candidate.shape:
        raise ParameterError(
            "Reference and candidate differ in length.",
            field="candidate",
            value=f"{candidate.shape} against {reference.shape}",
            allowed="two arrays of the same length",
            mend="Force the durations of the reference before comparing.",
        )
    for name, samples in (("reference", reference), ("candidate", candidate)):
        require_recording(samples, sample_rate_hz, SHORTEST_S, field=name)
    return reference, candidate
