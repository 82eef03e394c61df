"""`bench`: how fast and how even the engine speaks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kokoro_lab.commands.console import DONE, FAILED, say, text_of
from kokoro_lab.commands.options import json_option
from kokoro_lab.config import VARIANTS, settings
from kokoro_lab.errors import ParameterError


@click.command()
@click.option(
    "--preset",
    type=click.Choice(["short", "medium", "long", "article"]),
    default="medium",
    show_default=True,
    help="Length of the texts.",
)
@click.option("--trials", default=10, show_default=True, type=click.IntRange(1), help="Distinct texts.")
@click.option("--stream/--file", "streamed", default=True, help="As a stream, or as a whole file.")
@click.option(
    "--voice", default=lambda: settings().voice, show_default="af_heart", help="A name, or a blend."
)
@click.option("--variant", type=click.Choice(VARIANTS), help="Precision of the weights.")
@click.option(
    "--concurrency", default=1, show_default=True, type=click.IntRange(1, 64), help="Texts at a time."
)
@click.option("--chunk-ms", type=click.IntRange(30, 120), help="Length of a chunk of the library's stream.")
@click.option("--memory", is_flag=True, help="Sample resident memory in each trial.")
@click.option(
    "--profile-interval",
    "profile_interval_s",
    type=click.FloatRange(0.001, 60),
    metavar="SECONDS",
    help="How often --memory reads.  [default: 0.05]",
)
@click.option(
    "--listen",
    "listen_s",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Hang up after so much speech: for the time to first audio of long texts.",
)
@click.option("--save-audio", is_flag=True, help="Keep each trial as a WAV file.")
@click.option("--http", is_flag=True, help="Through our own server, as a client hears it.")
@click.option("--peers", is_flag=True, help="Against kokoro-onnx, in turn; prints ratios.")
@click.option("--resume", is_flag=True, help="Instead: cut streams go on; are they whole, and how soon?")
@click.option(
    "--load", is_flag=True, help="Instead: --concurrency streams at once, 429s and /health meanwhile."
)
@click.option(
    "--lifecycle",
    is_flag=True,
    help="Instead: --trials streams at once while the server is stopped, or crashes; is any sample lost?",
)
@click.option(
    "--soak-minutes",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help="Instead: --concurrency listeners for so long, by a mix of --trials texts. Does anything creep?",
)
@click.option(
    "--pace",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Of --soak-minutes: share of a stream's length that it is listened to before the next one.",
)
@click.option("--misbehave", is_flag=True, help="Of --soak-minutes: others come who leave or stop reading.")
@click.option("--corpus", type=click.Path(path_type=Path), help="Sentences, one a line; else the fixtures.")
@click.option("--seed", default=0, help="Of the choice of texts.")
@click.option("--profile", is_flag=True, help="Instead: where the time goes, by stage and by operator.")
@click.option(
    "--text",
    "text_alone",
    is_flag=True,
    help="Instead: the text front end alone, by sentence; with --memory over 1 MB of text too.",
)
@json_option
def bench(corpus: Path | None, as_json: bool, profile: bool, text_alone: bool, **options: Any) -> None:
    """Time to first audio, real-time factor, gaps and memory, over distinct texts."""
    from kokoro_lab.lab.bench.front_end import prose, read_alone
    from kokoro_lab.lab.bench.plan import JUDGED, BenchPlan, carry_out
    from kokoro_lab.lab.bench.texts import PRESETS, sentences_of, texts_of
    from kokoro_lab.lab.fixtures import load_texts
    from kokoro_lab.speech.engine import load_engine

    plan = BenchPlan(**options)
    kinds = {"--profile": profile, "--text": text_alone}
    kinds |= {f"--{field.replace('_', '-')}": bool(getattr(plan, field)) for field in JUDGED}
    asked = [name for name, given in kinds.items() if given]
    if len(asked) > 1:
        raise ParameterError(
            f"{' and '.join(asked)} are benchmarks of their own.",
            field=asked[1],
            allowed="one of them at a time",
        )
    if corpus:
        sentences = [line.strip() for line in text_of(None, corpus).splitlines() if line.strip()]
    elif text_alone:
        sentences = prose()
    else:
        sentences = sentences_of([t.text for t in load_texts() if t.kind in ("prose", "short", "long")])
    if text_alone:
        path, lines = read_alone(sentences, "en-us", memory=plan.memory)
        click.echo(path.read_text("utf-8") if as_json else "\n".join([*lines, f"kept in {path.parent}"]))
        return
    if profile:
        from kokoro_lab.lab.bench.profile import profile_report

        engine = load_engine(plan.variant, say=say)
        (text,) = texts_of(sentences, PRESETS[plan.preset], 1, plan.seed)
        click.echo(profile_report(engine.config, text, plan.voice))
        return
    if plan.judged:
        from kokoro_lab.lab.bench.verdicts import judge

        judged = judge(plan, sentences, progress=not as_json, say=say)
        click.echo(judged.path.read_text("utf-8") if as_json else "\n".join(judged.lines))
        sys.exit(DONE if judged.passed else FAILED)
    outcome = carry_out(
        plan, sentences, lambda: load_engine(plan.variant, say=say), progress=not as_json, say=say
    )
    if as_json:
        click.echo(outcome.path.read_text("utf-8"))  # what is kept: figures that are not finite are null
        return
    for line in outcome.lines:
        click.echo(line)
    click.echo(f"kept in {outcome.path.parent}")
