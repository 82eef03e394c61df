"""`golden`: lists or records the clips with which later versions are compared."""

from __future__ import annotations

from typing import Any

import click

from kokoro_lab.commands.console import say, show
from kokoro_lab.commands.options import json_option
from kokoro_lab.errors import ParameterError


@click.command()
@click.argument("cases", nargs=-1, metavar="[CASE]...")
@click.option("--all", "everything", is_flag=True, help="Record every case of golden/plan.json.")
@json_option
def golden(cases: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Record CASE anew (greeting, or one variant of it: greeting-int8) and show what that changes; without
    CASE, list the golden clips and change nothing."""
    from kokoro_lab.lab.gates.golden_files import load_golden

    if everything and cases:
        raise ParameterError("--all takes no CASE.", field="--all", value=", ".join(cases))
    clips = load_golden()
    if not (cases or everything):
        _list(clips, as_json)
        return
    from kokoro_lab.lab.bars import quiet
    from kokoro_lab.lab.gates.golden_speaking import names_of, record_anew
    from kokoro_lab.lab.results import new_run_folder
    from kokoro_lab.speech.engine import load_engine

    folder = new_run_folder("golden")
    names = list(clips.planned) if everything else names_of(clips, cases)
    with quiet(as_json):
        changes = record_anew(
            clips, names, folder, lambda variant: load_engine(variant, tuned=False, say=say)
        )
    then = f"look and listen in {folder}; then commit golden/, or take it back: git checkout golden"
    show([*map(str, changes), then], folder / "difference.json", as_json)


def _list(clips: Any, as_json: bool) -> None:
    shown = ("text", "voice", "speed", "streamed")
    lengths_s = {name: recording.duration_s for name, recording in clips.recordings.items()}
    rows = [
        {"name": name} | {key: getattr(case, key) for key in shown} | {"duration_s": lengths_s.get(name)}
        for name, (case, _) in clips.planned.items()
    ]
    show(map(_line, rows), {"clips": rows, "faults": clips.faults()}, as_json)
    for fault in clips.faults() if not as_json else ():
        say(f"FAULT  {fault}")


def _line(row: dict[str, Any]) -> str:
    length = "   not recorded" if row["duration_s"] is None else f"{row['duration_s']:6.2f} s"
    how = "stream" if row["streamed"] else "file"
    return f"{row['name']:26} {length}  {row['text']}, {row['voice']} at {row['speed']:g}, {how}"
