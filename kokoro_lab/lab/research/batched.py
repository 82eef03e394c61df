"""Several windows in one forward pass: the CPU time that it saves, and the memory and waiting that it costs.

A batch is several windows end to end, each with the context that it would have by itself. Decoding a batch
takes as many multiplications as decoding its windows one by one, but the weights are read only once. The
engine's windows leave out the context that later layers do not need. A batch could leave it out, too; here,
batches and single windows keep all of the context. The model's layers take one scale and shift in a pass, so
a batch is exact only if its windows are of one segment. Windows of several segments would need a scale and
shift for each window, which takes no more computing. So the measurement shows the most that a batch could
save.

A *window* is the part of a segment that the vocoder decodes at once, in trunk frames of 12.5 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import psutil

from kokoro_lab.datatypes import Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.signatures import STFT_SIZE_SAMPLES, TRUNK_FRAME_SAMPLES
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.memory import memory_figures, sampled_memory
from kokoro_lab.lab.conversion.exports import VocoderInputs
from kokoro_lab.lab.research.turns import take_turns
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.lab.tuning.comparison import Spoken
from kokoro_lab.metrics.intervals import paired_ratio
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.model.windows import CONTEXT_FRAMES, Span

IN_TURN, ONE_PASS, HALF_MORE = "in turn", "one pass", "one pass and a half"
WORTH = 0.85
"""A batch is worth having if it takes at most this share of the CPU time of its windows one by one."""
LEAST_SNR_DB = 80.0
"""Least SNR of windows in one pass against the same windows in turn, for float weights. With integers,
roundings differ more."""


class SpokenSegment(VocoderInputs):
    """The vocoder's inputs for one segment, and the places where windows fit into the segment."""

    def spans(self, frames: int, count: int, context: int) -> list[Span]:
        """The ranges of `count` windows, spread over the segment, each with its context inside the
        segment."""
        last = self.prosody.frames - context - frames
        return [(int(at), int(at) + frames) for at in np.linspace(context, last, count)]

    def fits(self, frames: int) -> bool:
        """Whether a window of `frames` with its context fits into the segment."""
        return self.prosody.frames >= frames + 2 * CONTEXT_FRAMES


def segments(decoder: StagedDecoder, spoken: Sequence[Spoken]) -> list[SpokenSegment]:
    """Run the stages before the vocoder for each segment."""
    return [SpokenSegment.of(decoder, *each) for each in spoken]


def in_turn(decoder: StagedDecoder, segment: SpokenSegment, spans: Sequence[Span]) -> list[Samples]:
    """Decode each window by itself, with the same context in all layers as in `one_pass`, so that the work is
    the same."""
    return [samples for span in spans for samples in one_pass(decoder, segment, [span])]


def one_pass(
    decoder: StagedDecoder, segment: SpokenSegment, spans: Sequence[Span], context: int = CONTEXT_FRAMES
) -> list[Samples]:
    """Decode all windows end to end in one pass, with `context` frames on both sides of each."""
    outer = [(start - context, stop + context) for start, stop in spans]
    own = segment.prosody
    excitation = [own.excitation[:, a * TRUNK_FRAME_SAMPLES : b * TRUNK_FRAME_SAMPLES] for a, b in outer]
    last = outer[-1][1] * TRUNK_FRAME_SAMPLES
    excitation.append(own.excitation[:, last : last + STFT_SIZE_SAMPLES])
    laid = replace(
        own,
        trunk=np.concatenate([own.trunk[:, :, a:b] for a, b in outer], axis=2),
        excitation=np.concatenate(excitation, axis=1),
    )
    whole = (0, laid.frames)
    samples = decoder.vocoder.decoding(laid, segment.scale, segment.shift, whole)(whole)
    ends = np.cumsum([stop - start for start, stop in outer])
    return [
        samples[
            (end - context - (stop - start)) * TRUNK_FRAME_SAMPLES : (end - context) * TRUNK_FRAME_SAMPLES
        ]
        for end, (start, stop) in zip(ends, spans, strict=True)
    ]


def _half_more(decoder: StagedDecoder, segment: SpokenSegment, spans: Sequence[Span]) -> None:
    one_pass(decoder, segment, spans)
    one_pass(decoder, segment, spans[: (len(spans) + 1) // 2])


def measure(
    decoder: StagedDecoder,
    spoken: Sequence[SpokenSegment],
    frames: Sequence[int],
    counts: Sequence[int],
    rounds: int,
) -> pd.DataFrame:
    """Decode windows of every length in `frames` and number in `counts`, in turn and in one pass,
    interleaved.

    Returns
    -------
    pandas.DataFrame
        The rows of `turns.take_turns`, with two more columns: frames and count.
    """
    rows = []
    for (number, segment), long, count in tqdm(
        list(product(enumerate(spoken), frames, counts)), desc="batches", disable=None
    ):
        if not segment.fits(long):
            continue
        spans = segment.spans(long, count, CONTEXT_FRAMES)
        ways: dict[str, Callable[[], object]] = {
            IN_TURN: partial(in_turn, decoder, segment, spans),
            ONE_PASS: partial(one_pass, decoder, segment, spans),
            HALF_MORE: partial(_half_more, decoder, segment, spans),
        }
        for way in ways.values():
            way()
        rows += [{**row, "frames": long, "count": count} for row in take_turns(ways, number, rounds)]
    return pd.DataFrame(rows)


def gains(trials: pd.DataFrame) -> pd.DataFrame:
    """The ratio of one pass to windows in turn; a row for each length and count.

    Returns
    -------
    pandas.DataFrame
        ratio, low, high: the ratio of CPU times, with its 95 % interval over segments. mean_wait_ratio: ratio
        of the mean times that listeners wait for their window. first_wait_ratio: the same for the listener
        who is first in turn.
    """
    rows = []
    for (frames, count), part in trials.groupby(["frames", "count"]):
        wide = part.pivot(index=["text_number", "round"], columns="system", values=["compute_s", "wall_s"])
        texts = list(wide.index.get_level_values(0))
        own, other = wide["compute_s"][IN_TURN], wide["compute_s"][ONE_PASS]
        found = paired_ratio(own, other, texts)
        longer = float((wide["wall_s"][ONE_PASS] / wide["wall_s"][IN_TURN]).median())
        rows.append(
            {"frames": frames, "count": count, "ratio": found.value, "low": found.low, "high": found.high}
            | {"mean_wait_ratio": longer * 2 * count / (count + 1), "first_wait_ratio": longer * count}
        )
    return pd.DataFrame(rows)


def drawn(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `gains` in the form that `plots.against_default` draws."""
    names = [f"{row.count} windows of {12.5 * row.frames:.0f} ms" for row in table.itertuples(index=False)]
    return table.set_index(pd.Index(names))[["ratio", "low", "high"]]


def memory(config: EngineConfig, segment: SpokenSegment, frames: int, counts: Sequence[int]) -> pd.DataFrame:
    """By how many MB the process grows at most while a batch is decoded in new sessions; a row for each
    number of windows in `counts`."""
    rows = []
    for count in counts:
        decoder = StagedDecoder(config)
        spans = segment.spans(frames, count, CONTEXT_FRAMES)
        with sampled_memory(psutil.Process(), 0.002) as readings:
            one_pass(decoder, segment, spans)
        found = memory_figures(readings)
        rows.append({"count": count, "more_mb": found["rss_peak_mb"] - found["rss_start_mb"]})
    return pd.DataFrame(rows)


def least_snr_db(decoder: StagedDecoder, spoken: Sequence[SpokenSegment], context: int) -> float:
    """The least SNR, in dB, of windows in one pass against the same windows in turn. In the pass, they have
    `context` frames on both sides."""
    found = []
    for segment in spoken:
        spans = segment.spans(min(40, segment.prosody.frames - 2 * CONTEXT_FRAMES), 3, CONTEXT_FRAMES)
        ways = in_turn(decoder, segment, spans), one_pass(decoder, segment, spans, context)
        found += [signal_to_difference_db(*pair) for pair in zip(*ways, strict=True)]
    return float(min(found))


def controls(
    decoder: StagedDecoder, spoken: Sequence[SpokenSegment], trials: pd.DataFrame
) -> list[NegativeControl]:
    """Controls: windows without their context must differ, and half as much computing again must be
    noticed."""
    once, dearer = (trials[trials.system == way] for way in (ONE_PASS, HALF_MORE))
    dear = paired_ratio(once.compute_s, dearer.compute_s, list(once.text_number))
    bare = least_snr_db(decoder, spoken, 0)
    return [
        NegativeControl("windows without context", caught=bare < LEAST_SNR_DB),
        NegativeControl("half as much computing again", caught=bool(dear.low > 1.1)),
    ]


def checks_of(snr_db: float, table: pd.DataFrame) -> list[Check]:
    """The checks: a batch gives the samples of its windows in turn, and takes at most 1.5 times their
    computing."""
    return [
        Check("least_snr_db", snr_db, low=LEAST_SNR_DB),
        Check("dearest_batch_ratio", float(table.ratio.max()), high=1.5),
    ]


def verdict(table: pd.DataFrame) -> str:
    """The answer of the notebook, in one sentence."""
    best = table.loc[table.ratio.idxmin()]
    worth = "worth it" if best.high < WORTH else "not worth it"
    ms = 12.5 * best.frames
    return (
        f"{worth}: at best, {best['count']:.0f} windows of {ms:.0f} ms in one pass take {best.ratio:.2f} "
        f"({best.low:.2f} to {best.high:.2f}) of the CPU time of one by one, where {WORTH} was asked for, "
        f"and a listener waits {best.mean_wait_ratio:.2f} times as long"
    )


def figures_of(table: pd.DataFrame, held: pd.DataFrame) -> dict[str, float]:
    """The figures that a result keeps."""
    found: dict[str, float] = {}
    for row in table.itertuples(index=False):
        stem = f"{row.count}_windows_of_{row.frames}"
        found |= {f"{stem}_compute_ratio": row.ratio, f"{stem}_mean_wait_ratio": row.mean_wait_ratio}
    return found | {f"{row.count}_windows_more_mb": row.more_mb for row in held.itertuples(index=False)}
