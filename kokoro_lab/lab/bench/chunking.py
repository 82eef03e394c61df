"""Compares chunk sizes and pre-buffers: recorded streams are replayed with every pre-buffer."""

from __future__ import annotations

import hashlib
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.trial import Playout, gaps_beyond_chunks_s, play
from kokoro_lab.lab.fixtures import FixtureText
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.playback.buffering import PreBuffer
from kokoro_lab.speech.engine import Engine

CHUNKS_S = (0.030, 0.050, 0.080, 0.120)
PRE_BUFFERS = (1, 2, 3)
"""The pre-buffers that are tried, in chunks."""
LENGTH_TOLERANCE_S = 0.0005
BURST_S = (0.2, 0.4)
"""Shortest and longest stall in seconds, as a network or a busy machine may cause it."""
OVERDUE_S = 0.1
"""Seconds by which the last chunk comes too late in a negative control."""


@dataclass(frozen=True, slots=True)
class ChunkArrivals:
    """When the chunks of one stream arrived.

    Parameters
    ----------
    text : str
        Id of the text that was spoken.
    chunk_s : float
        Length of a chunk, as asked for.
    arrivals_s, lengths_s : tuple of float
        For each chunk, the seconds from the request to its arrival, and its length in seconds.
    sha256 : str
        SHA-256 of all samples, joined.
    """

    text: str
    chunk_s: float
    arrivals_s: tuple[float, ...]
    lengths_s: tuple[float, ...]
    sha256: str

    @property
    def ttfa_s(self) -> float:
        return self.arrivals_s[0]


def record(
    engine: Engine, texts: Sequence[FixtureText], voice: str, *, chunks_s: Sequence[float] = CHUNKS_S
) -> list[ChunkArrivals]:
    """Stream every text at every chunk size, on a warm engine, as fast as the engine computes.

    The sizes are interleaved, and each text begins with another size, so that other work of the machine
    affects all sizes alike.

    Raises
    ------
    ParameterError
        A chunk size is not 0.030 to 0.120 s, or there is no text or size.
    """
    if not texts or not chunks_s:
        raise ParameterError("There is nothing to stream.", field="texts", allowed="a text and a chunk size")
    engine.warm(voice)
    engine.first_audio.clear()  # else a repeated text would begin with cached first audio
    jobs = [
        (text, chunks_s[(turn + i) % len(chunks_s)])
        for turn, text in enumerate(texts)
        for i in range(len(chunks_s))
    ]
    return [_recorded(engine, text, voice, chunk_s) for text, chunk_s in tqdm(jobs, desc="streams")]


def _recorded(engine: Engine, text: FixtureText, voice: str, chunk_s: float) -> ChunkArrivals:
    digest = hashlib.sha256()
    arrivals, lengths = [], []
    started = time.perf_counter()
    for chunk in engine.stream(text.text, voice=voice, chunk_s=chunk_s):
        arrivals.append(time.perf_counter() - started)
        lengths.append(chunk.duration_s)
        digest.update(chunk.samples.tobytes())
    return ChunkArrivals(text.id, chunk_s, tuple(arrivals), tuple(lengths), digest.hexdigest())


def jitter(recordings: Sequence[ChunkArrivals]) -> pd.DataFrame:
    """How evenly the chunks of each size came.

    Returns
    -------
    pandas.DataFrame
        Index chunk_ms. Columns streams_count, ttfa_p50_ms, ttfa_p95_ms, jitter_std_ms, jitter_p95_ms and
        jitter_max_ms. Jitter is the time between two chunks less the length of a chunk; if it is below 0, the
        stream runs ahead of the player.
    """
    rows = []
    for chunk_ms, group in _by_size(recordings).items():
        ttfa_ms = 1000 * np.array([r.ttfa_s for r in group])
        jitter_s = [j for r in group for j in gaps_beyond_chunks_s(r.arrivals_s, r.lengths_s)]
        jitter_ms = 1000 * np.array(jitter_s or [np.nan])
        rows.append(
            {
                "chunk_ms": chunk_ms,
                "streams_count": len(group),
                "ttfa_p50_ms": np.median(ttfa_ms),
                "ttfa_p95_ms": np.quantile(ttfa_ms, 0.95),
                "jitter_std_ms": jitter_ms.std(),
                "jitter_p95_ms": np.quantile(jitter_ms, 0.95),
                "jitter_max_ms": jitter_ms.max(),
            }
        )
    return pd.DataFrame(rows).set_index("chunk_ms")


def _by_size(recordings: Sequence[ChunkArrivals]) -> dict[int, list[ChunkArrivals]]:
    groups = defaultdict(list)
    for recording in sorted(recordings, key=lambda r: r.chunk_s):
        groups[round(1000 * recording.chunk_s)].append(recording)
    return dict(groups)


def arrivals_by_size(
    recordings: Sequence[ChunkArrivals],
) -> dict[str, list[tuple[tuple[float, ...], tuple[float, ...]]]]:
    """Size of chunks, in words such as `chunks of 50 ms` → for each stream with such chunks, when they
    arrived and how long they are."""
    return {
        f"chunks of {chunk_ms} ms": [(r.arrivals_s, r.lengths_s) for r in group]
        for chunk_ms, group in _by_size(recordings).items()
    }


def replay(recordings: Sequence[ChunkArrivals], pre_buffers: Sequence[int] = PRE_BUFFERS) -> pd.DataFrame:
    """Play every recording with every pre-buffer, given in chunks.

    Returns
    -------
    pandas.DataFrame
        A row for each recording and pre-buffer: text, chunk_ms, pre_buffer_chunks, underruns, late_s (silence
        within the speech), heard_after_s (from the request to the first sound that is played).

    Raises
    ------
    ParameterError
        A pre-buffer is below 0, or no pre-buffer is given.
    """
    if not pre_buffers or min(pre_buffers) < 0:
        raise ParameterError(
            "Pre-buffers are counted in chunks, and there must be one.",
            field="pre_buffers",
            value=list(pre_buffers),
            allowed="0 or more, each",
        )
    return pd.DataFrame(
        {
            "text": recording.text,
            "chunk_ms": round(1000 * recording.chunk_s),
            "pre_buffer_chunks": chunks,
            "underruns": (played := _played(recording, chunks)).underruns,
            "late_s": played.late_s,
            "heard_after_s": recording.ttfa_s + chunks * recording.chunk_s,
        }
        for recording in recordings
        for chunks in pre_buffers
    )


def _played(recording: ChunkArrivals, pre_buffer_chunks: int) -> Playout:
    held = PreBuffer.fixed(pre_buffer_chunks * recording.chunk_s)
    return play(recording.arrivals_s, recording.lengths_s, held)


def summary(replayed: pd.DataFrame) -> pd.DataFrame:
    """The rows of `replay`, summarised for each size of chunk and pre-buffer.

    Index: chunk_ms and pre_buffer_chunks. Columns: streams and broken_streams (how many streams there are,
    and how many have an underrun), underruns and late_s (sums), heard_after_ms (median).
    """
    groups = replayed.groupby(["chunk_ms", "pre_buffer_chunks"])
    return pd.DataFrame(
        {
            "streams": groups.size(),
            "broken_streams": groups.underruns.agg(lambda u: int((u > 0).sum())),
            "underruns": groups.underruns.sum(),
            "late_s": groups.late_s.sum(),
            "heard_after_ms": groups.heard_after_s.median() * 1000,
        }
    )


def recommendation(replayed: pd.DataFrame) -> str:
    """A sentence that names the shortest pre-buffer, in ms, with which no stream has an underrun; of several,
    the one with the smallest chunks. If no pre-buffer is long enough, it names the combination with the least
    silence within speech."""
    table = summary(replayed).reset_index()
    table["pre_buffer_ms"] = table.chunk_ms * table.pre_buffer_chunks
    streams = int(table.streams.iloc[0])
    smooth = table[table.underruns == 0]
    if smooth.empty:
        best = table.sort_values(["late_s", "pre_buffer_ms", "chunk_ms"]).iloc[0]
        return (
            f"No combination plays all {streams} streams without a gap. The best is {_named(best)}: "
            f"underruns {best.underruns:.0f}, silence in speech {best.late_s:.2f} s in all."
        )
    best = smooth.sort_values(["pre_buffer_ms", "chunk_ms"]).iloc[0]
    return (
        f"Take {_named(best)}: none of {streams} streams has a gap, and the first sound is heard "
        f"{best.heard_after_ms:.0f} ms after the request (median)."
    )


def _named(row: pd.Series) -> str:
    chunks = int(row.pre_buffer_chunks)
    held = f"{chunks} chunk{'' if chunks == 1 else 's'}, {row.pre_buffer_ms:.0f} ms"
    return f"chunks of {row.chunk_ms:.0f} ms and a pre-buffer of {held}"


def judge(recordings: Sequence[ChunkArrivals], replayed: pd.DataFrame) -> list[Check]:
    """The checks that hold on any machine: the size of chunks changes no sample, chunks are as long as
    requested, and a longer pre-buffer never causes more underruns."""
    hashes = defaultdict(set)
    for recording in recordings:
        hashes[recording.text].add(recording.sha256)
    ordered = replayed.sort_values("pre_buffer_chunks").groupby(["text", "chunk_ms"])
    worse = sum(int((group.underruns.diff() > 0).sum()) for _, group in ordered)
    return [
        Check("streams_count", len(recordings), low=1),
        Check("texts_with_differing_samples_count", sum(len(h) > 1 for h in hashes.values()), high=0),
        Check("chunks_of_another_length_count", sum(map(_odd_chunks, recordings)), high=0),
        Check("replays_that_more_pre_buffer_made_worse_count", worse, high=0),
    ]


def _odd_chunks(recording: ChunkArrivals) -> int:
    """The number of chunks that are not as long as requested; the last one may be shorter."""
    *whole, last = recording.lengths_s
    odd = sum(abs(length_s - recording.chunk_s) > LENGTH_TOLERANCE_S for length_s in whole)
    return odd + (not 0 < last <= recording.chunk_s + LENGTH_TOLERANCE_S)


def controls(
    recordings: Sequence[ChunkArrivals], pre_buffers: Sequence[int] = PRE_BUFFERS
) -> list[NegativeControl]:
    """Negative controls: `judge` must notice faulty streams, and `play` an overdue chunk with every
    pre-buffer."""
    first, *others = recordings
    longer = (first.lengths_s[0] + 2 * LENGTH_TOLERANCE_S, *first.lengths_s[1:])
    faulty = {
        "a stream with other samples": [*recordings, replace(first, sha256="0" * 64)],
        "a chunk that is too long": [replace(first, lengths_s=longer), *others],
        "no stream at all": [],
    }
    plain = replay(recordings, pre_buffers)
    found = [
        NegativeControl(name, caught=bool(failed(judge(streams, plain)))) for name, streams in faulty.items()
    ]
    played = [(r, chunks) for r in recordings if len(r.arrivals_s) > 1 for chunks in pre_buffers]
    noticed = bool(played) and all(_notices_delay(r, chunks) for r, chunks in played)
    return [
        *found,
        NegativeControl(f"a chunk {1000 * OVERDUE_S:.0f} ms overdue is an underrun", caught=noticed),
    ]


def _notices_delay(recording: ChunkArrivals, pre_buffer_chunks: int) -> bool:
    """Whether `play` counts one underrun and exactly `OVERDUE_S` of silence more when the last chunk comes
    that much too late."""
    *arrivals_s, _ = recording.arrivals_s
    *lengths_s, _ = recording.lengths_s
    held_s = pre_buffer_chunks * recording.chunk_s
    before = play(arrivals_s, lengths_s, PreBuffer.fixed(held_s))
    needed_s = recording.ttfa_s + held_s + sum(lengths_s) + before.late_s
    after = _played(replace(recording, arrivals_s=(*arrivals_s, needed_s + OVERDUE_S)), pre_buffer_chunks)
    added_s = after.late_s - before.late_s
    return after.underruns == before.underruns + 1 and abs(added_s - OVERDUE_S) < LENGTH_TOLERANCE_S


def held_up(recording: ChunkArrivals, bursts: int, seed: int) -> ChunkArrivals:
    """The same stream with `bursts` stalls of 200 to 400 ms. A chunk that would arrive during a stall arrives
    at its end.

    All stalls begin in the first second after the first chunk, while the player has little speech in hand.
    """
    draw = random.Random(f"{seed} {recording.text} {recording.chunk_s}")
    arrivals_s = recording.arrivals_s
    for _ in range(bursts):
        begin_s = recording.ttfa_s + draw.uniform(0, 1)
        end_s = begin_s + draw.uniform(*BURST_S)
        arrivals_s = tuple(end_s if begin_s < at_s < end_s else at_s for at_s in arrivals_s)
    return replace(recording, arrivals_s=arrivals_s)


def fixed_and_adaptive(
    recordings: Sequence[ChunkArrivals], *, bursts: int = 2, seed: int = 0
) -> pd.DataFrame:
    """Play the recordings, as they are and with stalls, with a fixed and with an adaptive pre-buffer.

    Returns
    -------
    pandas.DataFrame
        Index: stream (`as recorded`, `held up`) and pre-buffer (`fixed`, `adaptive`). Columns: underruns and
        late_s (sums), held_ms (mean pre-buffer).
    """
    streams = {"as recorded": list(recordings), "held up": [held_up(r, bursts, seed) for r in recordings]}
    start_s = PreBuffer().target_s
    rows = []
    for name, group in streams.items():
        for kind, pre_buffer in (("fixed", PreBuffer.fixed(start_s)), ("adaptive", PreBuffer())):
            held_s, played = [], []
            for recording in group:
                held_s.append(pre_buffer.target_s)
                played.append(play(recording.arrivals_s, recording.lengths_s, pre_buffer))
            rows.append(
                {
                    "stream": name,
                    "pre-buffer": kind,
                    "underruns": sum(one.underruns for one in played),
                    "late_s": sum(one.late_s for one in played),
                    "held_ms": 1000 * np.mean(held_s),
                }
            )
    return pd.DataFrame(rows).set_index(["stream", "pre-buffer"])
