"""The command line: `python -m kokoro_lab`, or `kokoro-lab`.

Exit codes: 0 done, 1 a gate failed or something is missing, 2 the request is wrong, 3 it broke,
130 it was interrupted by Ctrl-C.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import Any

import click

from kokoro_lab._version import __version__
from kokoro_lab.commands.console import BROKE, INTERRUPTED, WRONG
from kokoro_lab.config import misspelt, settings
from kokoro_lab.errors import InputError, KokoroLabError, MissingExtra, SettingsError

COMMANDS = (
    *("bench", "completion", "doctor", "export", "fetch", "golden", "listen", "player", "results"),
    *("run", "serve", "service", "speak", "text", "tune", "wyoming"),
)
"""The commands, each in the module of its name."""


class _Group(click.Group):
    """Prints our errors as one paragraph and gives them their exit codes."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KokoroLabError as error:
            click.echo(f"Error: {error}", err=True)
            asked_wrong = isinstance(error, (InputError, MissingExtra, SettingsError))
            context.exit(WRONG if asked_wrong else BROKE)
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)
            context.exit(INTERRUPTED)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kokoro-lab")
@click.pass_context
def main(context: click.Context) -> None:
    """Kokoro-82M measured, tuned and served."""
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    # Our loggers alone: a library's messages at that level may quote a text
    if settings().verbose_logs:
        logging.getLogger("kokoro_lab").setLevel(logging.DEBUG)
    # A server writes misspelt variables into its log, in the log's own form
    if context.invoked_subcommand not in ("serve", "wyoming"):
        for sentence in misspelt():
            click.echo(f"Warning: {sentence}", err=True)


for command in COMMANDS:
    main.add_command(getattr(import_module(f"kokoro_lab.commands.{command}"), command))


if __name__ == "__main__":
    main()
