"""Cases for our operators, drawn at random: right ones with what NumPy makes of them, and broken ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.graphs.fast_fir import FastFir, packed
from tests.native.driver import Case, Values

Floats = npt.NDArray[np.float32]
Rng = np.random.Generator


@dataclass(frozen=True)
class Right:
    """A case that has to be answered, and the answer.

    Parameters
    ----------
    case : Case
    expected : tuple of numpy.ndarray
        An output each, float64.
    tolerance : float
        The largest difference, absolute.
    columns : slice
        Of the last axis, what is looked at.
    """

    case: Case
    expected: tuple[Values, ...]
    tolerance: float = 1e-4
    columns: slice = field(default_factory=lambda: slice(None))


def normal(rng: Rng, *shape: int, scale: float = 1.0) -> Floats:
    return (rng.normal(size=shape) * scale).astype(np.float32)


def pick(rng: Rng, *values: Any) -> Any:
    return values[rng.integers(len(values))]


def size(rng: Rng, most: int) -> int:
    """A number from 1 on, more often a small one."""
    return int(most ** rng.uniform()) if rng.uniform() < 0.9 else most


def convolved(x: Values, weight: Values, dilation: int, padding: Values | float = 0.0) -> Values:
    reach = weight.shape[2] // 2 * dilation
    padded = np.empty((x.shape[0], x.shape[1] + 2 * reach))
    padded[:] = np.broadcast_to(np.reshape(padding, (-1, 1)), padded.shape)
    padded[:, reach : reach + x.shape[1]] = x
    made = np.zeros((weight.shape[0], x.shape[1]))
    for tap in range(weight.shape[2]):
        made += weight[:, :, tap].astype(np.float64) @ padded[:, tap * dilation : tap * dilation + x.shape[1]]
    return made


def snaked(x: Values, scale: Values, shift: Values) -> Values:
    z = x.astype(np.float64) * scale[:, None] + shift[:, None]
    return z - np.cos(z) + 1


def normalised(x: Values, style: Values, rest: Values, told: tuple[Values, Values] | None) -> Values:
    x = x.astype(np.float64)
    mean, variance = (x.mean(1), x.var(1)) if told is None else told
    channels = x.shape[0]
    scale, shift = style[0, :channels], style[0, channels : 2 * channels]
    z = (x - mean[:, None]) * ((1 + scale) / np.sqrt(variance + rest[0]))[:, None] + shift[:, None]
    return np.where(z < 0, rest[1] * z, z)


def window(rng: Rng, length: int) -> tuple[list[Values | None], slice]:
    """Inputs `asked` and `around`, or none, and which columns they ask for."""
    if rng.uniform() < 0.4:
        return [None, None], slice(None)
    rate, reach = int(rng.integers(1, 20)), int(rng.integers(0, 30))
    first, last = sorted(int(n) for n in rng.integers(-2, length // rate + 3, 2))
    begin = min(max(first * rate - reach, 0), length)
    end = min(max(last * rate + reach, begin), length)
    return [np.array([first, last]), np.array([rate, reach])], slice(begin, end)


def known_statistics(rng: Rng, channels: int) -> tuple[list[Values | None], tuple[Values, Values] | None]:
    told = (normal(rng, channels), np.abs(normal(rng, channels)) + np.float32(0.1))
    how = rng.integers(3)
    if how == 0:
        return [None, None, None], None
    return [np.array(how == 1), *told], told if how == 1 else None


def padded_style(rng: Rng, channels: int) -> Floats:
    """Scales and shifts, and what the product that makes them fills up with."""
    return normal(rng, 1, 2 * channels + int(rng.integers(20)))


def fast(rng: Rng, operator: str) -> Right:
    channels_in, channels_out, length = size(rng, 24), 8 * size(rng, 20), size(rng, 2500)
    taps, dilation, phases = pick(rng, 1, 3, 5, 7, 11), pick(rng, 1, 3, 5), pick(rng, 1, 2, 4)
    weight = normal(rng, channels_out, channels_in, taps) / np.float32(np.sqrt(channels_in * taps))
    plan, weights = packed(FastFir.of(weight, dilation, phases))
    x, bias = normal(rng, channels_in, length), normal(rng, channels_out)
    inputs: list[Values | None] = [x[None], plan, weights, bias]
    columns, by, seen = slice(None), None, x.astype(np.float64)
    if operator == "SnakeConv":
        scale, shift = normal(rng, channels_in, scale=2), normal(rng, channels_in)
        asked, columns = window(rng, length)
        by = normal(rng, 1, channels_out, length) if rng.uniform() < 0.5 else None
        inputs += [scale, shift, *asked, by]
        seen = snaked(x, scale, shift)
    elif operator == "NormConv":
        style, rest = padded_style(rng, channels_in), np.array([1e-3, 0.2], np.float32)
        statistics, told = known_statistics(rng, channels_in)
        inputs += [style, rest, *statistics]
        seen = normalised(x, style, rest, told)
    made = convolved(seen, weight, dilation) + bias[:, None]
    if by is not None:
        made = made + by[0]
    return Right(Case(operator, tuple(inputs)), (made[None],), 2e-4 * max(1, np.abs(seen).max()), columns)


def quant(rng: Rng, operator: str) -> Right:
    channels_in, channels_out, length = size(rng, 30), 8 * size(rng, 20), size(rng, 1500)
    taps, dilation = pick(rng, 1, 3, 7, 11), pick(rng, 1, 3, 5)
    groups = (channels_in + 3) // 4
    weight = rng.integers(-127, 128, (channels_out, 4 * groups, taps)).astype(np.int8)
    weight[:, channels_in:] = 0
    packed_weights = weight.reshape(channels_out // 8, 8, groups, 4, taps).transpose(0, 2, 4, 1, 3)
    inverse = np.abs(normal(rng, channels_in, scale=40)) + 10
    zero = rng.integers(0, 256, channels_in).astype(np.float32)
    of_zeros = (weight[:, :channels_in].astype(np.int64) * zero.astype(np.int64)[None, :, None]).sum((1, 2))
    sums = np.stack([of_zeros, weight.astype(np.int64).sum((1, 2))]).astype(np.int32)
    factor, bias = np.abs(normal(rng, channels_out, scale=1e-5)), normal(rng, channels_out)
    plan = np.array([channels_out, 4 * groups, taps, dilation])
    x = normal(rng, channels_in, length)
    steps, outputs = np.stack([inverse, zero]).astype(np.float32), np.stack([factor, bias])
    inputs: list[Values | None] = [x[None], plan, packed_weights, sums, steps, outputs]
    seen = x.astype(np.float64)
    asked, columns = window(rng, length)
    by = None
    if operator == "QuantSnakeConv":
        scale, shift = normal(rng, channels_in, scale=2), normal(rng, channels_in)
        by = normal(rng, 1, channels_out, length) if rng.uniform() < 0.5 else None
        inputs += [scale, shift, *asked, by]
        seen = snaked(x, scale, shift)
    else:
        inputs += asked
    level = np.clip(np.rint(seen * steps[0][:, None].astype(np.float64)) + zero[:, None], 0, 255)
    total = convolved(level, weight[:, :channels_in], dilation, zero) - sums[0][:, None]
    made = total * factor[:, None] + bias[:, None]
    if by is not None:
        made = made + by[0]
    # Where a value is half way between two levels, the last bit of a cosine decides
    tolerance = 1e-4 + 4 * 127 * float(factor.max())
    return Right(Case(operator, tuple(inputs)), (made[None],), tolerance, columns)


def product(rng: Rng) -> Right:
    inputs, outputs = size(rng, 600), 32 * size(rng, 5)
    shape = [size(rng, 6) for _ in range(rng.integers(0, 4))]
    x, weight = normal(rng, *shape, inputs), normal(rng, inputs, outputs)
    panels = weight.reshape(inputs, outputs // 32, 32).transpose(1, 0, 2)
    return Right(Case("Product", (x, panels)), (x.astype(np.float64) @ weight,), 2e-3)


def quant_product(rng: Rng) -> Right:
    inputs, outputs = 4 * size(rng, 100), 8 * size(rng, 20)
    shape = [size(rng, 40) for _ in range(rng.integers(0, 3))]
    x = normal(rng, *shape, inputs)
    weight = rng.integers(-127, 128, (outputs, inputs)).astype(np.int8)
    tiles = weight.reshape(outputs // 8, 8, inputs // 4, 4).transpose(0, 2, 1, 3)
    scale, profile = np.abs(normal(rng, outputs, scale=1e-3)), np.abs(normal(rng, inputs)) + np.float32(0.1)
    sums = weight.astype(np.int32).sum(1, dtype=np.int32)
    level = x.astype(np.float64) * profile
    step = np.abs(level).max(-1, keepdims=True) / 127
    made = np.rint(level / np.maximum(step, 1e-30)) @ weight.T.astype(np.float64) * step * scale
    tolerance = 1e-3 + 3 * 127 * float(step.max(initial=0) * scale.max())
    return Right(Case("QuantProduct", (x, tiles, sums, scale, profile)), (made,), tolerance)


def phases(rng: Rng) -> Right:
    overtones, frames, samples = size(rng, 9), size(rng, 200), 2 * size(rng, 200)
    phase, f0 = normal(rng, 1, overtones, frames, scale=10), normal(rng, 1, 1, frames, scale=100)
    at = np.clip((np.arange(frames * samples) + 0.5) / samples - 0.5, 0, frames - 1)
    made = np.stack([np.interp(at, np.arange(frames), row) for row in phase[0].astype(np.float64)], 1)
    made[np.repeat(f0[0, 0] <= 10, samples)] = 0
    rest = np.array([10, samples], np.float32)
    return Right(Case("Phases", (phase, f0, rest)), (made[None],), 0.01)


def recurrence(rng: Rng) -> Right:
    steps, inputs, hidden = size(rng, 40), size(rng, 50), 64 * size(rng, 3)
    x = np.repeat(normal(rng, steps, 1, inputs), rng.integers(1, 4, steps), axis=0)
    wide = normal(rng, 2, inputs, 4 * hidden, scale=0.3)
    back = normal(rng, 2, hidden, 4 * hidden, scale=0.3 / np.sqrt(hidden))
    bias = normal(rng, 2, 2, 4 * hidden)

    def panels(w: Floats) -> Floats:
        return np.ascontiguousarray(w.reshape(2, w.shape[1], -1, 32).transpose(0, 2, 1, 3))

    def sigmoid(z: Values) -> Values:
        return np.asarray(1 / (1 + np.exp(-z)))

    made = np.zeros((len(x), 2, 1, hidden))
    for direction in (0, 1):
        h = c = np.zeros(hidden)
        for place in range(len(x))[:: -1 if direction else 1]:
            gates = x[place, 0].astype(np.float64) @ wide[direction] + h @ back[direction]
            i, o, f, g = np.split(gates + bias[direction].sum(0), 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            made[place, direction, 0] = h
    return Right(Case("BiLstm", (x, panels(wide), panels(back), bias)), (made,), 1e-3)


def stft(rng: Rng) -> Right:
    length, points, hop = size(rng, 3000), pick(rng, 3, 5, 20, 21, 100), size(rng, 40)
    signal, shape = normal(rng, 1, length), np.hanning(points).astype(np.float32) + np.float32(0.1)
    count = 0 if length < points else (length - points) // hop + 1
    cut = np.stack([signal[0, i * hop : i * hop + points] * shape for i in range(count)] or [shape])
    spectrum = np.fft.rfft(cut.astype(np.float64))[:count].T
    made = np.concatenate([spectrum.real, spectrum.imag])[None]
    return Right(Case("ExactStft", (signal, shape, np.array([hop]))), (made,), 5e-3)


def norm(rng: Rng) -> Right:
    channels, length = size(rng, 60), size(rng, 500)
    x, style = normal(rng, channels, length), padded_style(rng, channels)
    rest = np.array([1e-3, 0.2], np.float32)
    inputs, told = known_statistics(rng, channels)
    made = normalised(x, style, rest, told)
    return Right(Case("Norm", (x[None], style, rest, *inputs)), (made[None],), 1e-3)


def statistics(rng: Rng) -> Right:
    channels, length, known = size(rng, 60), size(rng, 500), rng.uniform() < 0.5
    x, scale, shift = normal(rng, channels, length), normal(rng, channels), normal(rng, channels)
    exact = x.astype(np.float64)
    own = scale / np.sqrt(exact.var(1) + 1e-5)
    expected = (scale, shift) if known else (own, shift - exact.mean(1) * own)
    tolerance = 1e-3 * max(1.0, float(np.abs(own).max()))
    return Right(Case("Statistics", (x[None], scale, shift, np.array(known))), expected, tolerance)


def by_row(rng: Rng, operator: str) -> Right:
    x = normal(rng, *(size(rng, 6) for _ in range(rng.integers(0, 3))), size(rng, 300))
    if rng.uniform() < 0.1:
        x = normal(rng)
    exact, width = x.astype(np.float64), x.shape[-1] if x.ndim else 1
    if operator == "Arctangent":
        return Right(Case(operator, (x,)), (np.arctan(exact),), 1e-5)
    if operator == "Gelu":
        u = np.sqrt(2 / np.pi) * (exact + 0.044715 * exact**3)
        return Right(Case(operator, (x,)), (exact / (1 + np.exp(-2 * u)),), 1e-4)
    if operator == "Softmax":
        power = np.exp(exact - exact.max(-1, keepdims=True)) if x.ndim else np.array(1.0)
        return Right(Case(operator, (x,)), (power / power.sum(-1, keepdims=True) if x.ndim else power,), 1e-5)
    gamma, beta = normal(rng, width), normal(rng, width)
    if x.ndim == 0:
        return Right(Case(operator, (x, gamma, beta, np.float32([1e-3]))), (beta.reshape(()),), 1e-3)
    z = (exact - exact.mean(-1, keepdims=True)) / np.sqrt(exact.var(-1, keepdims=True) + 1e-3)
    return Right(Case(operator, (x, gamma, beta, np.float32([1e-3]))), (z * gamma + beta,), 1e-3)


def scores(rng: Rng) -> Right:
    heads, positions = size(rng, 4), size(rng, 70)
    channels = 32 * heads * size(rng, 3)
    queries, keys, mask = (
        normal(rng, positions, channels),
        normal(rng, positions, channels),
        normal(rng, positions),
    )
    factors = np.abs(normal(rng, 2))
    biases = [normal(rng, channels) if rng.uniform() < 0.6 else None for _ in range(2)]
    q, k = (
        ((x.astype(np.float64) + (0 if b is None else b)) * factors[0]).reshape(positions, heads, -1)
        for x, b in zip((queries, keys), biases, strict=True)
    )
    made = np.einsum("thc,shc->hts", q, k) * factors[1] + mask
    masks = pick(rng, mask, mask[None, None], np.tile(mask, (1, 1, positions, 1)))
    inputs = (queries[None], keys[None], masks, factors, np.array([heads]), *biases)
    return Right(Case("Scores", inputs), (made[None],), 1e-3 * max(1.0, float(np.abs(made).max())))


def mixture(rng: Rng) -> Right:
    heads, positions = size(rng, 4), size(rng, 70)
    channels = 32 * heads * size(rng, 3)
    shares, values = normal(rng, heads, positions, positions), normal(rng, positions, channels)
    bias = normal(rng, channels) if rng.uniform() < 0.6 else None
    v = (values.astype(np.float64) + (0 if bias is None else bias)).reshape(positions, heads, -1)
    made = np.einsum("hts,shc->thc", shares.astype(np.float64), v).reshape(1, positions, channels)
    return Right(Case("Mixture", (shares[None], values[None], bias)), (made,), 1e-2)


DRAWN: dict[str, Callable[[Rng], Right]] = {
    "FastConv": lambda rng: fast(rng, "FastConv"),
    "SnakeConv": lambda rng: fast(rng, "SnakeConv"),
    "NormConv": lambda rng: fast(rng, "NormConv"),
    "QuantConv": lambda rng: quant(rng, "QuantConv"),
    "QuantSnakeConv": lambda rng: quant(rng, "QuantSnakeConv"),
    "Product": product,
    "QuantProduct": quant_product,
    "Phases": phases,
    "BiLstm": recurrence,
    "ExactStft": stft,
    "Norm": norm,
    "Statistics": statistics,
    "Arctangent": lambda rng: by_row(rng, "Arctangent"),
    "LayerNorm": lambda rng: by_row(rng, "LayerNorm"),
    "Softmax": lambda rng: by_row(rng, "Softmax"),
    "Gelu": lambda rng: by_row(rng, "Gelu"),
    "Scores": scores,
    "Mixture": mixture,
}
"""Operator → a right case of it."""

_NUMBERS = (0, 1, 2, 3, -1, 4, 5, 7, 8, 9, 24, 96, 97, 255, 65_535, 65_537, 2**31, -(2**31), 2**62, -(2**63))
_REALS = (0.0, -0.0, 1.0, -1.0, 3.0, 1e-45, 1e30, 3.4e38, np.inf, -np.inf, np.nan, 7e5)


def broken(case: Case, rng: Rng, *, types: bool = True) -> Case:
    """The same case with one to three things of it changed, so that it need not be right any more.

    Parameters
    ----------
    types : bool
        Whether an input may be of another type or missing, which ONNX Runtime would refuse at once.
    """
    inputs = list(case.inputs)
    for _ in range(rng.integers(1, 4)):
        index = int(rng.integers(len(inputs)))
        value = inputs[index]
        if value is None:
            inputs[index] = pick(rng, *case.inputs) if types else None
        else:
            inputs[index] = _changed(value, rng, types)
    return Case(case.operator, tuple(inputs))


def _changed(value: Values, rng: Rng, types: bool) -> Values | None:
    how = int(rng.integers(8 if types else 6))
    if how == 0:
        return value[None] if rng.uniform() < 0.8 else value.reshape((1,) * 9 + value.shape)
    if how == 1:
        return value.ravel() if rng.uniform() < 0.5 else value.reshape(value.shape[::-1])
    if how in (2, 3) and value.ndim:  # shorter, longer or empty along one axis
        axis = int(rng.integers(value.ndim))
        most = value.shape[axis]
        wanted = int(pick(rng, 0, 1, max(most - 1, 0), most + 1, most + 7, most // 2))
        return np.take(value, np.arange(wanted), axis=axis, mode="wrap") if most else value
    if how in (4, 5) and value.size and value.dtype != np.bool_:
        changed = value.copy()
        numbers = _NUMBERS if value.dtype.kind == "i" else _REALS
        for _ in range(rng.integers(1, 4)):
            new = np.array(pick(rng, *numbers))
            changed.reshape(-1)[rng.integers(value.size)] = new.astype(value.dtype)
        return changed
    if how == 6:
        return None
    with np.errstate(invalid="ignore"):
        return (
            value.astype(pick(rng, np.float32, np.int64, np.int8, np.int32, np.bool_)) if how == 7 else value
        )
