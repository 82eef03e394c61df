"""`results`: lists, shows, compares, opens, exports and prunes the results of runs."""

from __future__ import annotations

import webbrowser
from dataclasses import asdict
from datetime import UTC, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kokoro_lab.commands.console import say, show
from kokoro_lab.commands.options import PATH, json_option, together
from kokoro_lab.config import VARIANTS
from kokoro_lab.errors import ParameterError

if TYPE_CHECKING:
    from kokoro_lab.lab.results.kept import KeptRun

WORST = "worst"
SHOWN = 10
"""How many clips are printed; the report has them all."""
WIDE = 60
"""How many characters of a cell are printed."""
VERDICTS = ("passed", "failed", "crashed", "interrupted", "running", "unreadable")
DATE = click.DateTime(("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"))


def _folder(context: click.Context, parameter: click.Parameter, given: Path | None) -> Path:
    from kokoro_lab.lab.results import results_folder

    if given is not None and not given.is_dir():
        raise ParameterError(f"There is no folder {given}.", field="--results", value=str(given))
    return given or results_folder()


folder_option = click.option(
    "--results", "folder", type=PATH, callback=_folder, help="Folder of results; else the repository's."
)
filters = together(
    click.option("--notebook", default="", help="Notebook, or the beginning of its name: 30."),
    click.option("--verdict", type=click.Choice(VERDICTS), default=None, help="How the run ended."),
    click.option("--commit", default="", help="Commit, or its first digits."),
    click.option("--variant", type=click.Choice(VARIANTS), default=None, help="Precision of the weights."),
    click.option("--since", type=DATE, help="Begun on this day or later, UTC."),
    click.option("--until", type=DATE, help="Begun before this day, UTC."),
)


@click.group()
def results() -> None:
    """List, show, compare, open, export or prune the results of runs.

    RUN is `latest`; a notebook or its number (its newest run); an id, or its end, as `list` prints it; or a
    folder. `~1` behind it is the run before: `compare 30~1 30`.
    """


@results.command("list")
@filters
@click.option("-n", "--newest", type=click.IntRange(1), help="List only this many runs.")
@folder_option
@json_option
def list_runs(folder: Path, newest: int | None, as_json: bool, **given: Any) -> None:
    """List runs, the newest first: how each ended, and which check failed or is nearest to its limit."""
    from kokoro_lab.lab.results.pages import row

    rows = [row(run) for run in _selected(folder, given)[:newest]]
    columns = ("short_id", "notebook", "verdict", "when", "variant", "commit", "duration", "point")
    lines = [["run", *columns[1:-1], "worst margin, or what failed"]]
    lines += [[str(one[name]) for name in columns] for one in rows]
    show(_aligned(lines) if rows else ["No run is so."], rows, as_json)


@results.command("show")
@click.argument("name", metavar="RUN")
@folder_option
@json_option
def show_run(name: str, folder: Path, as_json: bool) -> None:
    """Show one run: verdict, checks with their margins, controls, parameters, files, the worst clips."""

    run = _found(folder, name)[0]
    if as_json:
        facts = {"notebook": run.notebook, "run_id": run.run_id, "verdict": run.result.verdict}
        show((), facts | {"message": run.result.message} | dict(run.result.record), as_json)
        return
    _print_run(run)


def _print_run(run: KeptRun) -> None:
    from kokoro_lab.lab.results.kept import measured
    from kokoro_lab.lab.results.pages import row
    from kokoro_lab.lab.results.records import ranked
    from kokoro_lab.lab.results.units import words_of

    seen = row(run)
    click.echo(f"{run.notebook}  {run.run_id}")
    made = (seen["duration"], f"{seen['when']} UTC", run.variant, seen["commit"])
    click.echo("; ".join([run.result.verdict, *filter(None, made)]))
    for line in (run.result.message, *run.remarks, run.note):
        if line:
            click.echo(f"  {_plain(line)}")
    checks = [
        [words_of(one.name), "pass" if one.passed else "FAIL", *measured(one)]
        for one in ranked(run.result.checks)
    ]
    controls = [[one.name, "caught" if one.caught else "MISSED"] for one in run.result.controls]
    parameters = [[name, str(value)] for name, value in run.result.parameters.items()]
    texts = {one.get("candidate"): str(one.get("text") or "") for one in run.rows("clips")}
    clips = [[sound, texts.get(sound, "")] for sound in run.sounds[:SHOWN]]
    _print_part(["check", "", "measured", "limit", "margin"], checks)
    _print_part(["control", ""], controls)
    _print_part(["parameter", ""], parameters)
    _print_part([f"{len(clips)} of {len(run.sounds)} clips, the worst first", "text"], clips)
    tables = [run.folder / str(one.get("file")) for one in run.rows("tables")]
    for path in (run.report, *tables, run.folder):
        if path is not None:
            click.echo(f"  {path}")


@results.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("-o", "--output", type=PATH, help="Path of the page; else in results/compared/.")
@folder_option
@json_option
def compare(first: str, second: str, output: Path | None, folder: Path, as_json: bool) -> None:
    """Show what changed from run A to run B of one notebook, the worst changes first, and write a page with
    the sounds of both."""
    from kokoro_lab.lab.results import compared, pages

    a, b = _found(folder, first, second)
    changes = compared.compare_figures(a, b)
    page = pages.write_comparison(a, b, output or pages.comparison_path(folder, a, b))
    record = {"a": a.run_id, "b": b.run_id, "page": str(page), "figures": [asdict(one) for one in changes]}
    if as_json:
        show((), record, as_json)
        return
    click.echo(f"{a.notebook}: A {a.run_id} {a.result.verdict}, B {b.run_id} {b.result.verdict}")
    click.echo(compared.sentence(changes, a, b))
    figures = [
        [one.change, one.name, one.said(after=False), one.said(after=True), one.difference, one.limits]
        for one in changes
        if one.change != compared.SAME
    ]
    _print_part(["change", "figure", "A", "B", "difference", "limit"], figures)
    _print_part(["what else differs", "A", "B"], list(map(list, compared.differences(a, b))))
    click.echo(f"\nlook and listen: {page}")


@results.command("open")
@click.argument("name", metavar="[RUN]", required=False)
@click.option(
    "--sound",
    is_flag=False,
    flag_value=WORST,
    help="Play this sound of the run instead; without a name, the worst one.",
)
@folder_option
def open_run(name: str | None, sound: str | None, folder: Path) -> None:
    """Open the report of RUN in the browser, or play one of its sounds; without RUN, open the index."""
    from kokoro_lab.lab.results.kept import left_in
    from kokoro_lab.lab.results.pages import write_index

    run = _found(folder, name)[0] if name else None
    if run and sound:
        _play(_sound_of(run, sound))
        return
    if sound:
        raise ParameterError(
            "--sound needs a RUN.",
            field="--sound",
            value=sound,
            mend="Name it first: `results open 30 --sound`.",
        )
    page = run.report if run else write_index(folder)
    if page is None:
        said = f"{name} left no report; it left {left_in(run.folder)}." if run else ""
        raise ParameterError(said, field="run", value=name)
    address = page.resolve().as_uri()
    click.echo(address)
    if not webbrowser.open(address):
        say("There is no browser here: open this address in one.")


def _sound_of(run: KeptRun, wanted: str) -> Path:
    sounds = {Path(name).stem: run.folder / name for name in run.sounds}
    worst = list(sounds)[:1] if run.rows("clips") or len(sounds) == 1 else []
    asked = worst if wanted == WORST else (wanted, Path(wanted).stem)
    found = [name for name in asked if name in sounds]
    if not found:
        unsaid = sounds and wanted == WORST
        raise ParameterError(
            "It is not said which sound is the worst." if unsaid else f"There is no sound {wanted!r}.",
            field="--sound",
            value=wanted,
            allowed=", ".join(sounds) or "none: this run kept no sound",
        )
    return sounds[found[0]]


def _play(path: Path) -> None:
    from kokoro_lab.containers.pcm import read_wav
    from kokoro_lab.datatypes import SAMPLE_RATE_HZ
    from kokoro_lab.dsp import ditherer
    from kokoro_lab.playback.aloud import aloud
    from kokoro_lab.playback.sinks import SoundCard

    samples, rate_hz = read_wav(path)
    if samples.ndim > 1 or rate_hz != SAMPLE_RATE_HZ:
        raise ParameterError(f"{path} is not mono at {SAMPLE_RATE_HZ} Hz.", field="--sound", value=path.name)
    click.echo(f"playing {path} ({len(samples) / rate_hz:.1f} s)")
    with aloud(SoundCard(), ditherer("tpdf", rate_hz, 0)) as heard:
        heard.push(samples)
        for fallback in heard.finish().fallbacks:
            say(f"note   {fallback.stage}: {fallback.reason}")


@results.command()
@folder_option
def index(folder: Path) -> None:
    """Write index.html, the list of all runs. Each run does so at its end, too."""
    from kokoro_lab.lab.results.pages import write_index

    click.echo(write_index(folder))


@results.command()
@click.argument("name", metavar="RUN")
@click.argument("text", required=False, default="")
@folder_option
def note(name: str, text: str, folder: Path) -> None:
    """Write the note TEXT on RUN, which is then never pruned; without TEXT, remove the note."""
    from kokoro_lab.lab.results.kept import NOTE

    path = _found(folder, name)[0].folder / NOTE
    if text:
        path.write_text(text + "\n", "utf-8")
    else:
        path.unlink(missing_ok=True)
    click.echo(f"{'kept in' if text else 'no note in'} {path}")


@results.command()
@filters
@click.option("--keep", type=click.IntRange(0), help="How many runs of each notebook to keep.")
@click.option("--older-than", type=click.IntRange(1), metavar="DAYS", help="Remove runs of this age or more.")
@click.option("--yes", is_flag=True, help="Remove the runs; without this option, they are only named.")
@folder_option
def prune(keep: int | None, older_than: int | None, yes: bool, folder: Path, **given: Any) -> None:
    """Remove old runs. One that is under way, has a note, or may be evidence for the checklist stays."""
    from kokoro_lab.lab.results import pruning
    from kokoro_lab.lab.results.pages import write_index

    days = None if older_than is None else timedelta(older_than)
    old, evidence = pruning.old_runs(_selected(folder, given), keep, days), pruning.evidence_in(folder)
    freed = []
    for run in old:
        why = pruning.reason_to_keep(run, evidence)
        click.echo(
            f"{'keep  ' if why else 'remove'}  {run.notebook}  {run.run_id}  {why or run.result.verdict}"
        )
        if not why:
            freed.append(pruning.bytes_of(run))
            if yes:
                pruning.remove(run)
    end = "removed" if yes else "would be removed: --yes removes them"
    click.echo(f"{len(freed)} runs, {sum(freed) / 1e6:.1f} MB, {end}")
    if yes:
        write_index(folder)


@results.command()
@filters
@click.option("-o", "--output", type=PATH, help="A file that ends in .csv or .parquet.")
@click.option("--mlflow", metavar="URI", help="Address of an MLflow server or database.")
@folder_option
def export(output: Path | None, mlflow: str | None, folder: Path, **given: Any) -> None:
    """Write a table with a row for each run: parameters, checks, figures. MLflow gets runs that it lacks."""
    from kokoro_lab.lab.results import exporting

    if not (output or mlflow):
        raise ParameterError("export needs -o FILE or --mlflow URI.", field="--output")
    runs = _selected(folder, given)
    if output:
        click.echo(f"{len(runs)} runs in {exporting.export(runs, output)}")
    if mlflow:
        click.echo(f"{exporting.export_to_mlflow(runs, mlflow)} of {len(runs)} runs are new in {mlflow}")


def _selected(folder: Path, given: dict[str, Any]) -> list[KeptRun]:
    from kokoro_lab.lab.results.kept import read_runs, select

    since, until = (day and day.replace(tzinfo=UTC) for day in (given.pop("since"), given.pop("until")))
    words = {name: value or "" for name, value in given.items()}
    return select(read_runs(folder), since=since, until=until, **words)


def _found(folder: Path, *names: str) -> list[KeptRun]:
    from kokoro_lab.lab.results.kept import find_run, read_runs

    runs = read_runs(folder)
    if not runs:
        mend = "Make one: kokoro-lab run 00_quickstart."
        raise ParameterError(f"{folder} holds no run.", field="run", value=names[0], mend=mend)
    return [find_run(name, runs) for name in names]


def _print_part(heading: list[str], lines: list[list[str]]) -> None:
    if lines:
        click.echo("\n" + "\n".join(_aligned([heading, *lines])))


def _aligned(lines: list[list[str]]) -> list[str]:
    """Rows with aligned columns; long cells are shortened, except the last one of a row."""
    cleaned = [
        [*(cell[:WIDE] + "…" * (len(cell) > WIDE) for cell in map(_plain, line[:-1])), _plain(line[-1])]
        for line in lines
    ]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cleaned]


def _plain(text: str) -> str:
    """A text in one line, without control characters for the terminal: a notebook may have written it."""
    return "".join(filter(str.isprintable, " ".join(text.split())))
