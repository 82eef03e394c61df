"""`player`: a process that stays and plays the speech that it is sent."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kokoro_lab.commands.console import DONE, FAILED, say, show
from kokoro_lab.commands.options import PATH, choice_option, json_option, port_option
from kokoro_lab.errors import ParameterError

if TYPE_CHECKING:
    from kokoro_lab.playback.sinks import Sink

SINKS = ("sound", "file", "null")


@click.command()
@port_option("player_port", "8081", click.IntRange(0, 65535), "Port of 127.0.0.1 to listen on.")
@choice_option(
    "--sink",
    SINKS,
    "sound",
    "Where speech goes: the sound card, a WAV file, or nowhere at the pace of speech.",
)
@click.option("--device", help="Sound card: a name or number of `python -m sounddevice`.")
@click.option("-o", "--output", type=PATH, help="With --sink file: the WAV file.")
@click.option(
    "--pipe",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Play what is written to this FIFO, too; - plays standard input alone and ends with it.",
)
@click.option(
    "--pre-buffer",
    "pre_buffer_ms",
    type=click.FloatRange(0, 10_000),
    metavar="MS",
    help="Length of a fixed pre-buffer.  [default: long enough for the delays so far]",
)
@click.option(
    "--soak-minutes",
    type=click.FloatRange(0.1),
    help="Instead: test the player for this long, without sound, over a connection that stalls now and then.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the stalls of --soak-minutes.")
@json_option
def player(
    port: int,
    sink: str,
    device: str | None,
    output: Path | None,
    pipe: Path | None,
    pre_buffer_ms: float | None,
    soak_minutes: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Play speech that comes over a WebSocket or a pipe: 16-bit PCM, mono, 24 kHz, bare or as WAV."""
    if soak_minutes is not None:
        _soak(soak_minutes, seed, pre_buffer_ms, as_json)
    target = _sink(sink, device, output)
    pre_buffer_s = None if pre_buffer_ms is None else pre_buffer_ms / 1000
    if pipe is not None and str(pipe) == "-":
        _play_standard_input(target, pre_buffer_s, as_json)
        return
    from kokoro_lab.playback.player import main as player_main

    player_main(target, port, pipe=pipe, pre_buffer_s=pre_buffer_s, say=say)


def _sink(kind: str, device: str | None, output: Path | None) -> Sink:
    from kokoro_lab.playback.sinks import ClockedSink, SoundCard, WavSink

    if (kind == "file") != (output is not None):
        raise ParameterError(
            "--sink file and --output FILE belong together.", field="--output", allowed="both, or neither"
        )
    if device is not None and kind != "sound":
        raise ParameterError("--device chooses a sound card.", field="--device", allowed="with --sink sound")
    if output is not None:
        return WavSink(output)
    if kind == "null":
        return ClockedSink()
    return SoundCard(int(device) if device and device.isdigit() else device)


def _play_standard_input(sink: Sink, pre_buffer_s: float | None, as_json: bool) -> None:
    from kokoro_lab.playback.deck import Deck, running
    from kokoro_lab.playback.pipe import play_pipe

    deck = Deck(sink)
    deck.open()
    if pre_buffer_s is not None:
        deck.hold_back(pre_buffer_s)
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as source, running(deck):
        played = play_pipe(deck, source)
        status = deck.status()
    done = (
        f"played {status.played_samples / 24_000:.2f} s, {status.underruns} underruns, "
        f"{status.silent_s:.2f} s of silence among it"
    )
    show([done], asdict(status), as_json)
    sys.exit(DONE if played else FAILED)


def _soak(minutes: float, seed: int, pre_buffer_ms: float | None, as_json: bool) -> None:
    from kokoro_lab.lab.bars import quiet
    from kokoro_lab.lab.bench.playing import judge_player

    with quiet(as_json):
        judged = judge_player(minutes, seed, pre_buffer_ms, say=say)
    show(judged.lines, judged.path, as_json)
    sys.exit(DONE if judged.passed else FAILED)
