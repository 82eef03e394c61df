"""`listen`: evaluates a listening test, or serves its page to listeners."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

import click

from kokoro_lab.commands.console import say, show
from kokoro_lab.commands.options import choice_option, json_option
from kokoro_lab.config import VARIANTS
from kokoro_lab.errors import AnswersError, ParameterError

if TYPE_CHECKING:
    from kokoro_lab.lab.listening import ListeningSession

TRIALS = 40
VOICES = "af_heart,am_michael,bf_emma"


@click.command()
@click.argument("folder", required=False)
@click.option("--serve", is_flag=True, help="Serve the page of the test; each listener gets a secret link.")
@choice_option("--reference", VARIANTS, "fp32", "Variant that is taken as right.")
@choice_option("--candidate", VARIANTS, "int8", "Variant that is compared with it.")
@click.option(
    "--trials", type=click.IntRange(1), help=f"Trials of each listener of a new test.  [default: {TRIALS}]"
)
@click.option("--voices", default=VOICES, show_default=True, help="A new test's voices, separated by commas.")
@click.option(
    "--listeners",
    default="",
    metavar="N|NAMES",
    help="How many listeners, or their names separated by commas. Known listeners keep their links.",
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
    """Say what the listening test in FOLDER shows or, with --serve, have people take it.

    FOLDER is a path or a name in results/listening, by default REFERENCE-CANDIDATE. With --serve, a test
    that does not exist is made: both variants speak its passages.
    """
    from kokoro_lab.lab.listening.session import folder_of

    place = folder_of(folder or f"{reference}-{candidate}")
    if not serve:
        _show(place, as_json)
        return
    from kokoro_lab.lab.routes.listening import bound_to

    names = _names(listeners)
    with bound_to(host, port) as bound:  # before anything is spoken, since the port may be in use
        session = _session(place, (reference, candidate), trials, voices.split(","))
        _serve(session, names, bound)


def _show(place: Path, as_json: bool) -> None:
    from kokoro_lab.lab.listening import open_session
    from kokoro_lab.lab.listening.session import TEST_FILE

    if not (place / TEST_FILE).exists():
        raise AnswersError(
            f"There is no listening test in {place}.",
            field="FOLDER",
            value=str(place),
            mend="--serve makes one, for people to take; or name the folder of another.",
        )
    result = open_session(place).result()
    table = result.table()
    lines = [result.headline(), *(each for each in result.sentences() if each != result.headline())]
    if not table.empty:
        lines.insert(1, table.round(3).to_string(index=False))
    record = {"outcome": result.outcome, "figures": result.figures(), "sentences": result.sentences()}
    show(lines, record | {"listeners": table.to_dict("records")}, as_json)


def _session(
    place: Path, variants: tuple[str, str], trials: int | None, voices: list[str]
) -> ListeningSession:
    """The existing test, or a new one, spoken by both variants."""
    from kokoro_lab.lab.gates import abx
    from kokoro_lab.lab.listening import open_session
    from kokoro_lab.lab.listening.plan import TRIALS_A_CATCH
    from kokoro_lab.lab.listening.session import TEST_FILE

    pairs, repeats = abx.shape_of(trials or TRIALS)
    catches = pairs * repeats // TRIALS_A_CATCH
    if not (place / TEST_FILE).exists():
        say(f"{' and '.join(variants)} speak {pairs} passages; each is heard {repeats} times.")
        reference, candidate = map(abx.engine_of, variants)
        spoken = abx.make_heard(reference, candidate, voices, pairs)
        return open_session(place, spoken, repeats=repeats, seed=abx.SEED, catches=catches)
    session = open_session(place)
    if trials and session.plan.judged != pairs * repeats:
        raise ParameterError(
            f"The test in {place} has {session.plan.judged} trials.",
            field="trials",
            value=trials,
            mend="Leave --trials out, or name another FOLDER for another test.",
        )
    return session


def _names(listeners: str) -> list[str]:
    if listeners.isdecimal():
        return [f"listener-{number}" for number in range(1, int(listeners) + 1)]
    from kokoro_lab.lab.listening.answers import check_listener

    return [check_listener(name.strip()) for name in listeners.split(",") if name.strip()]


def _serve(session: ListeningSession, listeners: list[str], bound: socket) -> None:
    from kokoro_lab.lab.listening.panel import JOIN, open_panel
    from kokoro_lab.lab.listening.protocol import PROTOCOL_FILE, write_protocol
    from kokoro_lab.lab.routes.listening import make_listening_server

    panel = open_panel(session, listeners)
    if not panel.listeners:
        panel = open_panel(session, _names("1"))
    write_protocol(session.folder, session.plan, len(panel.listeners))
    progress = panel.progress()
    host = bound.getsockname()[0]
    server, address = make_listening_server(panel, bound)
    trials, width = len(session.plan), max(map(len, panel.listeners))
    for name in panel.listeners:
        click.echo(f"{name:{width}}  {address}{panel.tokens[name]}/  {progress[name]} of {trials} trials")
    if JOIN in panel.tokens:
        place = f"{address}{panel.tokens[JOIN]}/"
        click.echo(f"{'all':{width}}  {place}  one link for all: each who opens it gets one of these places")
    click.echo(f"{'you':{width}}  {address}{panel.tokens['']}/  who is how far, and the result")
    if (session.folder / PROTOCOL_FILE).exists():
        say(f"The rule by which answers are judged is in {session.folder / PROTOCOL_FILE}.")
    say("Give each listener one link, and nobody yours. Ctrl-C ends the server; answers and links are kept.")
    if not ip_address(host).is_loopback:
        say(
            "Other machines reach it, unencrypted: do this in a network that you trust, and write this "
            "machine's name or address into the links."
        )
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
