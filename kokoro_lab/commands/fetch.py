"""`fetch`: downloads and checks the weights and voices."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kokoro_lab.commands.console import counted, say, show
from kokoro_lab.commands.options import PATH, json_option
from kokoro_lab.config import NAMED_SOURCES, PUBLISHED, VARIANTS, Source, settings, weights_of


@click.command()
@click.option(
    "--variant",
    "variants",
    multiple=True,
    type=click.Choice(VARIANTS),
    help="Fetch only the weights of this variant; can be given several times.  [default: all]",
)
@click.option("--recogniser", is_flag=True, help="Fetch Whisper base, too: it counts word errors (148 MB).")
@click.option("--voice-encoder", is_flag=True, help="Fetch Resemblyzer, too: it compares voices (17 MB).")
@click.option("--source", type=click.Choice(NAMED_SOURCES), help="Where weights are fetched from.")
@click.option(
    "--from",
    "filled",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Fetch from a folder that --to filled, without a network: all that it holds, or what is asked for.",
)
@click.option(
    "--to",
    "folder",
    metavar="FOLDER",
    type=PATH,
    help="Also copy what was fetched into this folder, for a machine without a network.",
)
@click.option("--force", is_flag=True, help="Fetch files again that are there already.")
@click.option("--list", "list_voices", is_flag=True, help="List the voices and stop.")
@json_option
def fetch(
    variants: tuple[str, ...],
    recogniser: bool,
    voice_encoder: bool,
    source: Source | None,
    filled: Path | None,
    folder: Path | None,
    force: bool,
    list_voices: bool,
    as_json: bool,
) -> None:
    """Fetch and check the weights, the 54 voices and the tagger of English words."""
    from kokoro_lab.weights import fetching, portable, store

    if list_voices:
        from kokoro_lab.weights.voices import GENDERS, LANGUAGE_OF_PREFIX, unread_voices

        names, unread = store.voice_names(), unread_voices()
        width = max(map(len, names))
        lines = (
            f"{name:{width}}  {LANGUAGE_OF_PREFIX[name[0]]:5}  {GENDERS[name[1]]}"
            + (f"  ({unread[name]}: name another --language)" if name in unread else "")
            for name in names
        )
        show(lines, names, as_json)
        return
    if source and filled:
        raise click.UsageError("--source and --from are two places to fetch from; name one.")
    if filled and not (variants or recogniser or voice_encoder):
        files = portable.held_by(filled)
    else:
        weights = [weights_of(v) for v in variants] or PUBLISHED
        files = store.files_of(weights, recogniser=recogniser, voice_encoder=voice_encoder)
    report = fetching.fetch_files(
        files, source=filled or source or settings().source, force=force, progress=not as_json, say=say
    )
    there = len(report.already_there)
    done = [
        f"{counted(len(report.fetched), 'file')} fetched, {there} {'was' if there == 1 else 'were'} there."
    ]
    record = asdict(report)
    if folder is not None:
        record["written"] = written = portable.fill(folder, files, progress=not as_json)
        megabytes = sum(file.bytes for file in files) / 1e6
        done += [
            f"{folder} holds {len(files)} files ({megabytes:.0f} MB), {len(written)} of them written now. "
            "Where there is no network: kokoro-lab fetch --from FOLDER"
        ]
    show(done, record, as_json)
