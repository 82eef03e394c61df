"""Checks a recording before a metric measures it: channels, length, finite samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import ParameterError


def require_recording(
    samples: npt.NDArray[Any],
    sample_rate_hz: int = 1,
    shortest_s: float = 0.0,
    *,
    channels: int = 1,
    finite: bool = True,
    field: str = "samples",
) -> None:
    """Refuse a recording that cannot be measured.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, shape (n,), or (n, channels) where there may be more than one.
    sample_rate_hz : int
        Sample rate by which the length in seconds is computed.
    shortest_s : float
        The least length in seconds; at least one sample in any case.
    channels : int
        The most channels.
    finite : bool
        Whether all samples have to be finite.
    field : str
        The caller's name for the recording, for the error.

    Raises
    ------
    ParameterError
        The samples are no floating point or not finite, or the recording has too many channels or is too
        short.
    """

    def refused(why: str, value: object, allowed: str) -> ParameterError:
        return ParameterError(f"{why} cannot be measured.", field=field, value=value, allowed=allowed)

    one = samples.ndim == 1
    several = samples.ndim == 2 and channels > 1 and 1 <= samples.shape[1] <= channels
    if not (np.issubdtype(samples.dtype, np.floating) and (one or several)):
        shapes = "one channel" if channels == 1 else f"shape (n,) or (n, channels), up to {channels} channels"
        raise refused(f"{samples.dtype} of shape {samples.shape}", str(samples.shape), f"floats, {shapes}")
    if len(samples) < max(1, shortest_s * sample_rate_hz):
        allowed = f"{shortest_s:g} s or more" if shortest_s else "at least one sample"
        raise refused("A recording that is too short", len(samples), allowed)
    bad = np.count_nonzero(~np.isfinite(samples)) if finite else 0
    if bad:
        raise refused("Samples that are not finite", int(bad), "finite samples")
