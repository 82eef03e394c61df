"""Fits the predictor of statistics: a regression of low rank, and a correction of its errors.

The *statistics* are the mean and the variance by which the vocoder normalises each channel over a segment.
They are the targets here; the features are what is known of a segment before the vocoder runs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kokoro_lab.model.predictor import POINT_STEP, Bend, Doubles, StatisticsPredictor, Values


def fit(
    inputs: Values,
    targets: Values,
    voices: Iterable[str],
    *,
    rank: int,
    ridge: tuple[float, float],
    bend: tuple[float, float] | None = None,
    known: int = 1500,
    unit: Values | None = None,
    towards: StatisticsPredictor | None = None,
) -> StatisticsPredictor:
    """Fit a predictor on rows of features (`inputs`) and rows of means and log variances (`targets`).

    Parameters
    ----------
    voices : iterable of str
        The voices of the rows.
    rank : int
        Number of directions that the prediction keeps: reduced-rank regression (Izenman 1975).
    ridge : tuple of float
        Penalties on the standardised features for the means and for the log variances, for 1,000 rows; they
        grow with the number of rows. Variances are noisier than means.
    bend : tuple of float, optional
        Kernel ridge regression of the ridge's errors, on distances between the ridge's predictions. The first
        value is the reach of the Gaussian as a multiple of the median squared distance between rows. The
        second value is the penalty of this regression, for 1,000 rows. None leaves the correction out.
    known : int
        How many rows, spread over all, the correction uses: the subset of regressors (Rasmussen & Williams
        2006, section 8.3.1).
    unit : numpy.ndarray, optional
        The error in each target that counts as 1. None weighs errors by their effect on the normalised
        activations: the channel's standard deviation for a mean, 2 for a log variance. With `towards`, that
        predictor's unit is used.
    towards : StatisticsPredictor, optional
        A predictor towards whose regression the ridge shrinks, instead of towards 0, so that what was learnt
        from earlier rows is kept.
    """
    half = targets.shape[1] // 2
    mean, deviation = inputs.mean(0), inputs.std(0) + 1e-6
    start = np.zeros((inputs.shape[1], targets.shape[1]), np.float32)
    if towards is not None:
        # Features count from the mean of these rows, in units of the deviation that `towards` was fitted with
        deviation, unit = towards.feature_deviation, towards.unit
        start = towards.inner @ (towards.outer / unit)
    elif unit is None:
        deviations = np.exp(0.5 * np.median(targets[:, half:], axis=0))
        unit = np.concatenate([deviations, np.full(half, 2, np.float32)])
    x = ((inputs - mean) / deviation).astype(np.float64)
    target_mean = targets.mean(0)
    y = (targets - target_mean) / unit
    full = start + _ridge(x, y - x @ start, ridge, half)
    # R of x = QR has no more rows than features; R @ full has the right singular vectors of x @ full
    basis = _principal(np.linalg.qr(x, mode="r") @ full, rank)
    kept = np.linspace(0, len(x) - 1, min(known, len(x))).astype(int)
    if bend is not None:
        straight = x @ full
        kernels, _ = _gaussian(straight @ basis, (straight @ basis)[kept], bend[0])
        # The correction may need directions that the regression does not have
        basis = _principal(straight + kernels[0] @ _solved(kernels, y - straight, bend[1]), rank)
    inner = full @ basis
    coordinates = x @ inner
    scale = np.sqrt((coordinates**2).mean(0))
    found = None
    if bend is not None:
        # Fitted at the rounded points that will be stored: large weights cancel out, so no point may move
        # later
        points = np.rint(coordinates[kept] / scale / POINT_STEP) * POINT_STEP * scale
        kernels, reach = _gaussian(coordinates, points, bend[0])
        weights = _solved(kernels, y @ basis - coordinates, bend[1]) / scale
        found = Bend(scale, points, weights, reach)
    return StatisticsPredictor(
        frozenset(voices),
        mean.astype(np.float32),
        deviation.astype(np.float32),
        (inner / scale).astype(np.float32),
        ((basis * scale).T * unit).astype(np.float32),
        target_mean.astype(np.float32),
        unit.astype(np.float32),
        found,
    )


def _ridge(x: Doubles, y: Doubles, penalties: tuple[float, float], half: int) -> Doubles:
    """Ridge regression of `y` on `x`, one penalty for the first `half` of the targets, one for the rest."""
    gram, toward = x.T @ x, x.T @ y
    parts = (toward[:, :half], toward[:, half:])
    solved = [
        np.linalg.solve(gram + penalty * len(x) / 1000 * np.eye(len(gram)), part)
        for penalty, part in zip(penalties, parts, strict=True)
    ]
    return np.concatenate(solved, axis=1)


def _gaussian(rows: Doubles, points: Doubles, reach: float) -> tuple[tuple[Doubles, Doubles], float]:
    """The kernels of rows with points and of points with each other, and the reach as a squared distance."""

    def distance(a: Doubles, b: Doubles) -> Doubles:
        found: Doubles = (a**2).sum(1)[:, np.newaxis] + (b**2).sum(1) - 2 * a @ b.T
        return found

    within = float(reach * np.median(distance(rows, points)))
    return (np.exp(-distance(rows, points) / within), np.exp(-distance(points, points) / within)), within


def _solved(kernels: tuple[Doubles, Doubles], y: Doubles, stiffness: float) -> Doubles:
    """Weights of the points that fit `y` at the rows, by penalised least squares."""
    near, among = kernels
    penalty = stiffness * len(near) / 1000 * among + 1e-8 * len(among) * np.eye(len(among))
    return np.asarray(np.linalg.solve(near.T @ near + penalty, near.T @ y), np.float64)


def _principal(rows: Doubles, rank: int) -> Doubles:
    """The `rank` right singular vectors of `rows` with the largest values, by columns."""
    # There are fewer rows than columns, so this product is the smaller one of the two
    values, left = np.linalg.eigh(rows @ rows.T)
    found: Doubles = rows.T @ (left[:, -rank:] / np.sqrt(np.maximum(values[-rank:], 1e-30)))
    return found
