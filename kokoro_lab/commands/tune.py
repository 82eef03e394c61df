"""`tune`: finds the settings that suit this machine, and adopts them if they beat the defaults."""

from __future__ import annotations

import sys
from typing import Any

import click

from kokoro_lab.commands.console import DONE, FAILED, say, show
from kokoro_lab.commands.options import json_option, variant_option, voice_option
from kokoro_lab.errors import GateFailed, ParameterError


@click.command()
@click.option("--trials", default=40, show_default=True, help="Configurations to try, earlier runs included.")
@click.option("--texts", default=6, show_default=True, help="Texts that each configuration speaks.")
@click.option("--compared", default=12, show_default=True, help="Other texts, for the comparison at the end.")
@click.option("--rounds", default=6, show_default=True, help="Rounds of that comparison; 0 only searches.")
@click.option("--preset", default="medium", show_default=True, help="Length of the texts, as in `bench`.")
@voice_option
@variant_option
@click.option(
    "--try", "tried", multiple=True, metavar="NAME=A,B", help="Values of a setting instead of the usual ones."
)
@click.option("--seed", default=0, help="Seed of the texts and of the search.")
@click.option("--dry-run", is_flag=True, help="Search and compare, but adopt nothing.")
@click.option(
    "--show", "shown", is_flag=True, help="Instead: print the adopted settings, and whether they are used."
)
@click.option("--forget", "forgotten", is_flag=True, help="Instead: drop the adopted settings.")
@json_option
def tune(
    tried: tuple[str, ...], dry_run: bool, shown: bool, forgotten: bool, as_json: bool, **options: Any
) -> None:
    """Find the settings for this machine: the same sound, but sooner, with less computing and memory.

    Run nothing else meanwhile. An interrupted search is continued when the command is called again.
    """
    if shown and forgotten:
        raise ParameterError("--show and --forget are asked for one at a time.", field="--forget")
    if shown or forgotten:
        (_show if shown else _forget)(options["variant"], as_json)
        return
    from kokoro_lab.lab import plots, results
    from kokoro_lab.lab.bars import quiet
    from kokoro_lab.lab.tuning import autotune, autotune_verdict

    plan = autotune.TunePlan(**options, tried=" ".join(tried))
    run = results.open_run("tune", parameters={**options, "tried": plan.tried, "dry_run": dry_run})
    with quiet(as_json):
        tuning = autotune.tune(plan, say=say)
    tuning.table.to_csv(run.folder / "trials.csv")
    plots.tuned_front(tuning.table, tuning.chosen).savefig(run.folder / "pareto.png", dpi=120)
    code, path = DONE, None
    try:
        autotune_verdict.conclude(run, tuning, plan)
        path = None if dry_run else autotune.keep(tuning)
    except GateFailed as failed:
        say(f"Nothing is adopted: {failed}")
        code = FAILED
    front = tuning.table[tuning.table.front].drop(columns=["state", "message", "front"])
    lines = (
        f"The Pareto front, costs as ratios to the defaults:\n{front.round(3).to_string()}",
        tuning.decision,
        f"kept in {run.folder}" + (f"; adopted in {path}" if path else ""),
    )
    show(lines, run.folder / "result.json", as_json)
    sys.exit(code)


def _show(variant: str | None, as_json: bool) -> None:
    from kokoro_lab.speech.engine import configuration

    config = configuration(variant)
    record = {"variant": config.variant, "tuned": config.tuned}
    show([f"{config.variant}: {config.tuned}"], record, as_json)


def _forget(variant: str | None, as_json: bool) -> None:
    from kokoro_lab.config import weights_of
    from kokoro_lab.lab.tuning.autotune import defaults
    from kokoro_lab.sessions.tuned import TuningConditions, forget
    from kokoro_lab.weights.store import model_sha256

    config = defaults(variant)
    there = forget(TuningConditions.of(config, model_sha256(weights_of(config.variant))), config.home)
    said = f"{config.variant}: {'forgotten' if there else 'there was nothing to forget'}"
    show([said], {"variant": config.variant, "forgotten": there}, as_json)
