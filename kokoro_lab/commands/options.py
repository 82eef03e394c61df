"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kokoro_lab.commands.completion import offering, voices
from kokoro_lab.config import CODE_MODES, DETECTION_MODES, EMOJI_MODES, INPUT_FORMATS, VARIANTS, settings

if TYPE_CHECKING:
    from kokoro_lab.datatypes import LexiconEntry

PATH = click.Path(path_type=Path)
Option = Callable[[Any], Any]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
voice_option = click.option(
    "--voice",
    default=lambda: settings().voice,
    show_default="af_heart",
    help="Name of a voice, or a blend such as af_bella(2)+af_sky(1).",
    shell_complete=offering(voices, "+"),
)
variant_option = click.option("--variant", type=click.Choice(VARIANTS), help="Precision of the weights.")


def choice_option(name: str, choices: Sequence[str], default: str, purpose: str, *names: str) -> Option:
    """An option that takes one of `choices`; its help shows the default."""
    kind = click.Choice(choices)
    return click.option(name, *names, type=kind, default=default, show_default=True, help=purpose)


def number_option(
    name: str, bounds: click.IntRange | click.FloatRange, default: float, purpose: str, *names: str
) -> Option:
    """An option that takes a number within `bounds`; its help shows the default."""
    return click.option(name, *names, type=bounds, default=default, show_default=True, help=purpose)


lexicon_option = click.option("--lexicon", type=PATH, help="Pronunciations: a TSV, CSV or JSON file.")
detection_option = choice_option(
    "--detect-languages", DETECTION_MODES, "auto", "Which foreign words are read in their own language."
)
code_option = choice_option(
    "--code", CODE_MODES, "skip", "How blocks of code in Markdown are read: not, by their language, whole."
)
emoji_option = choice_option("--emoji", EMOJI_MODES, "name", "Say the names of emoji, or leave them out.")
host_option = click.option(
    "--host", default=lambda: settings().host, show_default="127.0.0.1", help="Address to listen on."
)


def port_option(setting: str, shown: str, kind: Any = int, purpose: str = "Port to listen on.") -> Option:
    """The option for a port, by default that of a setting; `shown` is its text in the help."""
    return click.option(
        "--port", type=kind, default=lambda: getattr(settings(), setting), show_default=shown, help=purpose
    )


def input_format_option(purpose: str) -> Option:
    return click.option("--input-format", type=click.Choice(INPUT_FORMATS), default="text", help=purpose)


def together(*options: Option) -> Option:
    """Several options as one, which `-h` lists in this order."""

    def decorated(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


def entries_of(lexicon: Path | None) -> tuple[LexiconEntry, ...]:
    """The entries of the file that `--lexicon` names; none without it."""
    from kokoro_lab.g2p.lexicon_files import read_lexicon

    return read_lexicon(lexicon) if lexicon else ()
