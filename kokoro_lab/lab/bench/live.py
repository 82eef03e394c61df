"""Measures live texts, such as a model's answers: first sound, silences, and interruptions.

    python -m kokoro_lab.lab.bench.live speak -i - --play

runs `kokoro-lab` with a silent sink that reports when it begins to play and when it falls silent.
"""

from __future__ import annotations

import math
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import click
import numpy as np
import pandas as pd
from simple_websocket import ConnectionClosed

from kokoro_lab.containers.pcm import Pcm
from kokoro_lab.datatypes import AudioChunk, WordTiming
from kokoro_lab.errors import Interrupted, SynthesisError
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.client import ServerReportedError, live_messages
from kokoro_lab.lab.bench.own_server import own_server
from kokoro_lab.lab.bench.persistent import pcm_of
from kokoro_lab.lab.bench.received import ReceivedChunk, ReceivedStream, to_the_end
from kokoro_lab.lab.bench.texts import sentences_of
from kokoro_lab.lab.bench.trial import Playout, play
from kokoro_lab.lab.bench.verdicts import BenchVerdict, Measured, concluded
from kokoro_lab.lab.fixtures import load_rows, spread
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.lab.results.units import label_of
from kokoro_lab.metrics.intervals import paired_ratio
from kokoro_lab.playback import sinks
from kokoro_lab.speech.engine import Engine

RECORDED_TOKENS_PER_S = 30.0
"""How fast the answers of the fixtures are written, pauses included."""
LONG_SENTENCES = 3
"""The least number of sentences of a long answer. The first sound of a long answer must come before its end
is written."""
INTERRUPTED_S = (0.05, 0.5)
"""Least and most seconds from the first chunk (for the player, the first sound) to an interruption."""
HELD_BACK_S = 2.0
"""How many seconds late an interruption comes in a negative control: longer than computing any window takes,
so that some speech is handed out meanwhile."""
WAYS = ("session", "websocket", "player")
PARTS = {"p50": 0.5, "p95": 0.95}
LIMITS_OF_TIMES: dict[str, float] = {
    "long_answers_not_heard_before_their_end_count": 0,
    "underruns_count": 0,
    "computing_to_alone_ratio": 1.25,
    **{f"{way}_silent_s_p95": 0.050 for way in WAYS},
}

Answer = Sequence[tuple[str, float]]
"""What a model writes: each string, and the seconds from the string before it."""
Points = tuple[Sequence[float], Sequence[int]]
Pause = Callable[[float], object]


def load_answers(limit: int = 0, tokens_per_s: float = RECORDED_TOKENS_PER_S) -> list[Answer]:
    """The answers of the fixtures, or `limit` of them, written at `tokens_per_s`; bursts and pauses are
    scaled alike."""
    pace = RECORDED_TOKENS_PER_S / tokens_per_s
    found = [row["written"] for row in spread(load_rows("answers"), limit)]
    return [[(string, pace * wait_s) for string, wait_s in written] for written in found]


@dataclass(frozen=True)
class LiveTrial:
    """One answer, spoken while it was written. Times are in seconds from the answer's first string.

    Parameters
    ----------
    answer : sequence
        The strings of the answer, with their times.
    written_s : tuple of float
        When each string was written.
    heard : ReceivedStream
        The stream that the listener received.
    came_s : tuple of float
        For each chunk, when the last string arrived that had to be known before the chunk could be spoken; 0
        if there was none.
    timings : tuple of WordTiming
    alone_s : float
        TTFA of the answer's first clause, spoken as a whole text.
    """

    answer: Answer
    written_s: tuple[float, ...]
    heard: ReceivedStream
    came_s: tuple[float, ...]
    timings: tuple[WordTiming, ...]
    alone_s: float

    def silences(self) -> tuple[list[float], Playout]:
        """For each chunk, the seconds before it in which the listener had heard everything written so far and
        waited for the writer; and the playout without these waits."""
        all_heard_s, starved_s = self.heard.arrivals_s[0], [0.0]
        for came_s, length_s in zip(self.came_s, self.heard.lengths_s, strict=True):
            starved_s.append(starved_s[-1] + max(0.0, came_s - all_heard_s - starved_s[-1]))
            all_heard_s += length_s
        moved_s = np.subtract(self.heard.arrivals_s, starved_s[1:])
        return starved_s[1:], play(tuple(moved_s), self.heard.lengths_s)

    def row(self) -> dict[str, float]:
        """The figures of the answer. `needed_s` is when the string was written for which the first sound
        waited."""
        starved_s, playout = self.silences()
        first_s = self.heard.ttfa_s
        needed_s = max((at_s for at_s in self.written_s if at_s <= self.came_s[0]), default=0.0)
        return {
            "sentences_count": len(sentences_of([_text_of(self.answer)])),
            "written_s": self.written_s[-1],
            "first_sound_s": first_s,
            "needed_s": needed_s,
            "computing_s": first_s - needed_s,
            "alone_s": self.alone_s,
            "starved_s": starved_s[-1],
            "underruns_count": playout.underruns,
            "late_s": playout.late_s,
        }

    def curves(self) -> tuple[Points, Points, list[tuple[float, float]]]:
        """Characters written and characters heard over time, and the intervals in which the listener waited
        for the writer."""
        ends_s, end_s = list[float](), 0.0
        for at_s, length_s in zip(self.heard.arrivals_s, self.heard.lengths_s, strict=True):
            end_s = max(end_s, at_s) + length_s
            ends_s.append(end_s)
        heard_s = np.interp([t.end_s for t in self.timings], np.cumsum(self.heard.lengths_s), ends_s)
        written = list(accumulate(len(string) for string, _ in self.answer))
        more_s = np.diff(self.silences()[0], prepend=0.0).tolist()
        spans = [(at - more, at) for at, more in zip(self.came_s, more_s, strict=True) if more > 0]
        return (self.written_s, written), (tuple(heard_s), [t.end for t in self.timings]), spans


# --------------------------------------------------------------------------------------- measure


def measure(engine: Engine, answers: list[Answer], voice: str, pause: Pause = time.sleep) -> list[LiveTrial]:
    """Speak each answer as it is written, then its first clause as a text of its own. The writer waits by
    calling `pause` with the seconds until its next string."""
    engine.warm(voice)
    return [_measured(engine, answer, voice, pause) for answer in tqdm(answers, desc="answers")]


def _measured(engine: Engine, answer: Answer, voice: str, pause: Pause) -> LiveTrial:
    live = engine.session(voice=voice, cached=False)
    written, came = list[float](), list[float | None]()
    heard = ReceivedStream()
    live.write_from(_strings(answer, pause, written))
    for chunk in _received(live):
        came.append(live.stream.text_came_s)
        heard.take(chunk)
    clause = _text_of(answer)[: live.stream.segments[0].end]
    alone = to_the_end(_received(engine.stream(clause, voice=voice, cached=False)))
    began = heard.began_s
    written_s, came_s = (tuple((at or began) - began for at in times) for times in (written, came))
    return LiveTrial(answer, written_s, heard, came_s, tuple(live.timings), alone.ttfa_s)


def _text_of(answer: Answer) -> str:
    return "".join(string for string, _ in answer)


def _strings(answer: Answer, pause: Pause, written: list[float]) -> Iterator[str]:
    for string, wait_s in answer:
        pause(wait_s)
        written.append(time.perf_counter())
        yield string


def _received(chunks: Iterable[AudioChunk]) -> Iterator[ReceivedChunk]:
    return (ReceivedChunk(None, pcm_of(chunk)) for chunk in chunks)


def interrupted(
    chunks: Iterable[ReceivedChunk], cancel: Callable[[], object], after_s: float, late_s: float = 0.0
) -> tuple[ReceivedStream, float]:
    """The chunks heard, and the seconds from the interruption, `after_s` after the first chunk, to the last
    chunk. `cancel` is called `late_s` after the interruption.

    Raises
    ------
    SynthesisError
        The speech ended before it was interrupted.
    """
    heard, cancelled = ReceivedStream(), list[float]()

    def act() -> None:
        cancelled.append(time.perf_counter())
        time.sleep(late_s)
        cancel()

    with suppress(Interrupted, ServerReportedError):
        for chunk in chunks:
            heard.take(chunk)
            if len(heard.arrivals_s) == 1:
                threading.Timer(after_s, act).start()
    if not cancelled:
        raise SynthesisError("The speech ended before it was interrupted.", mend="Give a longer text.")
    return heard, max(0.0, heard.began_s + heard.arrivals_s[-1] - cancelled[0])


def measure_interruptions(
    engine: Engine, url: str, answers: list[Answer], voice: str, late_s: float = 0.0
) -> pd.DataFrame:
    """Interrupt each answer in a session of `engine`, over the WebSocket of the server at `url`, and in the
    player of `kokoro-lab speak`. For a negative control, each interruption is held back by `late_s`.

    Returns
    -------
    pandas.DataFrame
        A row for each answer: seconds from the interruption until the last sample was handed out
        (`session_silent_s`), came (`websocket_silent_s`), or was heard (`player_silent_s`: Ctrl-C in `speak
        --play -i -`), and `websocket_first_sound_s`, from the first string to the first sound.
    """
    draw, rows = random.Random(0), list[tuple[float, ...]]()
    for answer in tqdm(answers, desc="interruptions"):
        answer = [*answer, *answer]  # so that there is something to interrupt
        after_s = draw.uniform(*INTERRUPTED_S)
        live = engine.session(voice=voice, cached=False)
        live.write_from(_strings(answer, time.sleep, []))
        _, session_s = interrupted(_received(live), live.cancel, after_s, late_s)
        with live_messages(url, voice) as (say, chunks):
            threading.Thread(target=_write, args=(say, answer), daemon=True).start()
            heard, websocket_s = interrupted(chunks, partial(say, "cancel"), after_s, late_s)
        player_s = _player_silenced_s(_text_of(answer), voice, after_s, late_s)
        rows.append((session_s, websocket_s, player_s, heard.ttfa_s))
    return pd.DataFrame(rows, columns=[*(f"{way}_silent_s" for way in WAYS), "websocket_first_sound_s"])


def _write(say: Callable[..., object], answer: Answer) -> None:
    with suppress(OSError, ConnectionClosed):  # the speech was interrupted
        for string in _strings(answer, time.sleep, []):
            say("append", text=string)


def _player_silenced_s(text: str, voice: str, after_s: float, late_s: float) -> float:
    command = [sys.executable, "-m", __name__, "speak", "-i", "-", "--play", "--voice", voice]
    pipe, told, interrupted_s = subprocess.PIPE, list[str](), math.inf
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, text=True) as process:
        click.echo(text, process.stdin)
        for line in process.stderr or ():  # to the end of the process, as it might play once more
            told.append(line)
            if line == "plays\n" and interrupted_s == math.inf:
                time.sleep(after_s)
                interrupted_s = time.monotonic()
                time.sleep(late_s)
                process.send_signal(signal.SIGINT)
    return silent_for_good_s(told) - interrupted_s


def silent_for_good_s(told: Sequence[str]) -> float:
    """The time at which a player with a `ToldSink` fell silent after it played for the last time.

    Parameters
    ----------
    told : sequence of str
        The lines that it wrote until it ended, and other lines, which are passed over.

    Raises
    ------
    SynthesisError
        It never played, or it did not fall silent.
    """
    silent_s = math.inf
    for line in told:
        if line == "plays\n":
            silent_s = math.inf
        elif line.startswith("silent ") and silent_s == math.inf:
            silent_s = float(line.split()[1])
    if silent_s == math.inf or "plays\n" not in told:
        raise SynthesisError("`kokoro-lab speak` was not heard to fall silent.")
    return silent_s


class ToldSink(sinks.ClockedSink):
    """A silent sink that reports when it begins to play and when it falls silent, by a clock that processes
    share."""

    def play(self, pcm: Pcm) -> None:
        if self.unheard_samples == 0:
            click.echo("plays", err=True)
        super().play(pcm)

    def drop(self) -> None:
        super().drop()
        click.echo(f"silent {time.monotonic()}", err=True)


# ----------------------------------------------------------------------------------------- judge


def table_of(trials: Sequence[LiveTrial]) -> pd.DataFrame:
    """A row for each answer: `LiveTrial.row`."""
    return pd.DataFrame([trial.row() for trial in trials])


def figures(table: pd.DataFrame, stopped: pd.DataFrame) -> dict[str, float]:
    """Medians, 95th percentiles, counts and sums of the results of `measure` and `measure_interruptions`. An
    answer of at least `LONG_SENTENCES` sentences is long. The first sound of a long answer must not need its
    last string, and has to come before that string is written."""
    long = table[table.sentences_count >= LONG_SENTENCES]
    ratio = paired_ratio(table.alone_s, table.computing_s, list(table.index))
    columns = [*table[["first_sound_s", "needed_s", "computing_s", "alone_s"]].items(), *stopped.items()]
    return {
        "answers_count": len(table),
        "interruptions_count": len(stopped),
        "long_answers_count": len(long),
        "long_answers_needed_to_their_end_count": int((long.needed_s >= long.written_s).sum()),
        "long_answers_not_heard_before_their_end_count": int((long.first_sound_s >= long.written_s).sum()),
        **{f"{name}_{part}": of.quantile(share) for name, of in columns for part, share in PARTS.items()},
        "computing_to_alone_ratio": ratio.value,
        "computing_to_alone_low_ratio": ratio.low,
        "computing_to_alone_high_ratio": ratio.high,
        **table[["starved_s", "underruns_count", "late_s"]].sum(),
    }


def judge(found: Mapping[str, float], *, decides: bool = True) -> list[Check]:
    """The checks: there are answers, and no long one has to be complete before it is heard. If `decides`, the
    times must also stay within `LIMITS_OF_TIMES`."""
    limits = {"long_answers_needed_to_their_end_count": 0} | (LIMITS_OF_TIMES if decides else {})
    counted = Check("answers_count", found["answers_count"], low=1)
    return [counted, *(Check(name, found[name], high=high) for name, high in limits.items())]


def controls(trials: Sequence[LiveTrial], held_back: pd.DataFrame) -> list[NegativeControl]:
    """Negative controls. Two are made from the first answer, which is long: a first sound that waits for the
    end of the text, and a chunk that comes late. For each way to interrupt, `held_back` (of
    `measure_interruptions`) has interruptions that came late on purpose."""
    trial = trials[0]
    end_s = trial.written_s[-1]
    heard, (*before_s, last_s) = trial.heard, trial.heard.arrivals_s
    late = replace(trial, heard=replace(heard, arrivals_s=[*before_s, last_s + 2 * heard.audio_s]))
    behind = replace(heard, arrivals_s=[end_s + at_s for at_s in heard.arrivals_s])
    waits = replace(trial, came_s=(end_s,) * len(trial.came_s), heard=behind)
    judged = judge(figures(table_of([waits]), held_back), decides=False)
    noticed = late.silences()[1].underruns > trial.silences()[1].underruns
    missed = failed(judge(figures(table_of(trials), held_back)))
    return [
        NegativeControl("a first sound that waits for the end", bool(failed(judged))),
        NegativeControl("a chunk that comes when all before is heard", noticed),
        *(
            NegativeControl(f"{way}: held back by {HELD_BACK_S:g} s", f"{way}_silent_s_p95" in missed)
            for way in WAYS
        ),
    ]


def judge_live(engine: Engine, voice: str, trials: int, tokens_per_s: float) -> BenchVerdict:
    """Measure `trials` answers, and keep the verdict under `results/bench-live/<run>/`."""

    def measured() -> Measured:
        answers = load_answers(trials, tokens_per_s)
        spoken = measure(engine, answers, voice)
        with own_server({"variant": engine.config.variant, "voice": voice}) as server:
            stopped = measure_interruptions(engine, server.url, answers, voice)
            held_back = measure_interruptions(engine, server.url, answers[:1], voice, HELD_BACK_S)
        found, faults = figures(table_of(spoken), stopped), controls(spoken, held_back)
        lines = (f"{label_of(name):60} {value:.3f}" for name, value in found.items())
        return lines, lambda run: run.finish(engine, checks=judge(found), controls=faults, figures=found)

    return concluded("live", {"voice": voice, "trials": trials, "tokens_per_s": tokens_per_s}, measured)


if __name__ == "__main__":
    # A shell starts background processes with Ctrl-C ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The command as users run it, except for the sound card, which a machine may lack
    setattr(sinks, "SoundCard", ToldSink)  # noqa: B010  # mypy lets no class be assigned
    runpy.run_module("kokoro_lab", run_name="__main__")
