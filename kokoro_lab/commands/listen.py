"""`listen`: what a listening test shows, or a page for each who takes it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kokoro_lab.commands.console import say, show
from kokoro_lab.commands.options import json_option
from kokoro_lab.config import VARIANTS
from kokoro_lab.containers.plain_json import finite
from kokoro_lab.errors import AnswersError, ParameterError

if TYPE_CHECKING:
    from kokoro_lab.lab.listening import ListeningSession

TRIALS = 40
VOICES = "af_heart,am_michael,bf_emma"


@click.command()
@click.argument("folder", required=False)
@click.option("--serve", is_flag=True, help="Serve a page to each listener, each by a secret link.")
@click.option(
    "--reference", type=click.Choice(VARIANTS), default="fp32", show_default=True, help="Taken as right."
)
@click.option(
    "--candidate", type=click.Choice(VARIANTS), default="int8", show_default=True, help="Compared with it."
)
@click.option(
    "--trials", type=click.IntRange(1), help=f"Of a new test, for each listener: {TRIALS} unless given."
)
@click.option("--voices", default=VOICES, show_default=True, help="Of a new test, with commas.")
@click.option(
    "--listeners",
    default="",
    metavar="N|NAMES",
    help="How many, or names with commas; they keep their links.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, default=8881, show_default=True, help="Port to listen on.")
@json_option
def listen(
    folder: str | None,
    serve: bool,
    reference: str,
    candidate: str,
    trials: int | None,
    voices: str,
    listeners: str,
    host: str,
    port: int,
    as_json: bool,
) -> None:
    """Say what the listening test in FOLDER shows, or have people take it by --serve.

    FOLDER is a path or a name in results/listening, REFERENCE-CANDIDATE unless given. With --serve, a test
    that is not there is made: both variants speak its passages.
    """
    from kokoro_lab.lab.listening import open_session
    from kokoro_lab.lab.listening.session import TEST_FILE, folder_of

    place = folder_of(folder or f"{reference}-{candidate}")
    begun = (place / TEST_FILE).exists()
    if serve and not begun:
        session = _new_session(place, reference, candidate, trials or TRIALS, voices.split(","))
    elif begun:
        session = open_session(place)
    else:
        raise AnswersError(
            f"There is no listening test in {place}.",
            field="FOLDER",
            value=str(place),
            mend="--serve makes one, for people to take; or name the folder of another.",
        )
    if trials and begun:
        _refuse_other(session, trials)
    if serve:
        _serve(session, _names(listeners), host, port)
        return
    result = session.result()
    table = result.table()
    lines = [result.headline(), *(s for s in result.sentences() if s != result.headline())]
    if not table.empty:
        lines.insert(1, table.round(3).to_string(index=False))
    record = {"outcome": result.outcome, "figures": result.figures(), "sentences": result.sentences()}
    show(lines, finite(record | {"listeners": table.to_dict("records")}), as_json)


def _refuse_other(session: ListeningSession, trials: int) -> None:
    """A test that is there keeps its number of trials."""
    from kokoro_lab.lab.gates.abx import shape_of

    if len(session.plan) != math.prod(shape_of(trials)):
        raise ParameterError(
            f"The test in {session.folder} has {len(session.plan)} trials.",
            field="trials",
            value=trials,
            mend="Leave --trials out, or name another FOLDER for another test.",
        )


def _new_session(
    place: Path, reference: str, candidate: str, trials: int, voices: list[str]
) -> ListeningSession:
    from kokoro_lab.lab.gates import abx
    from kokoro_lab.lab.listening import open_session

    pairs, repeats = abx.shape_of(trials)
    say(f"{reference} and {candidate} speak {pairs} passages; each is heard {repeats} times.")
    engines = abx.engine_of(reference), abx.engine_of(candidate)
    return open_session(place, abx.make_heard(*engines, voices, pairs), repeats=repeats, seed=abx.SEED)


def _names(listeners: str) -> list[str]:
    if listeners.isdecimal():
        return [f"listener-{number}" for number in range(1, int(listeners) + 1)]
    return [name.strip() for name in listeners.split(",") if name.strip()]


def _serve(session: ListeningSession, listeners: list[str], host: str, port: int) -> None:
    from kokoro_lab.lab.listening.panel import open_panel
    from kokoro_lab.lab.routes.listening import make_listening_server

    panel = open_panel(session, listeners)
    if not panel.listeners:
        panel = open_panel(session, _names("1"))
    progress = panel.progress()
    server, address = make_listening_server(panel, host, port)
    trials, width = len(session.plan), max(map(len, panel.listeners))
    for name in panel.listeners:
        click.echo(f"{name:{width}}  {address}{panel.tokens[name]}/  {progress[name]} of {trials} trials")
    click.echo(f"{'you':{width}}  {address}{panel.tokens['']}/  who is how far, and the result")
    say("Give each listener one link, and nobody yours. Ctrl-C ends the server; answers and links are kept.")
    if host not in ("127.0.0.1", "localhost", "::1"):
        say(
            "Other machines reach it, unencrypted: do this in a network that you trust, and write this "
            "machine's name or address into the links."
        )
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
