"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kokoro_lab.commands.completion import offering, voices
from kokoro_lab.config import CODE_MODES, DETECTION_MODES, EMOJI_MODES, INPUT_FORMATS, VARIANTS, settings

if TYPE_CHECKING:
    from kokoro_lab.datatypes import LexiconEntry

PATH = click.Path(path_type=Path)
Function = TypeVar("Function", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
voice_option = click.option(
    "--voice",
    default=lambda: settings().voice,
    show_default="af_heart",
    help="A name, or a blend.",
    shell_complete=offering(voices, "+"),
)
variant_option = click.option("--variant", type=click.Choice(VARIANTS), help="Precision of the weights.")
host_option = click.option(
    "--host", default=lambda: settings().host, show_default="127.0.0.1", help="Address to listen on."
)
lexicon_option = click.option("--lexicon", type=PATH, help="Pronunciations: a TSV, CSV or JSON file.")
detection_option = click.option(
    "--detect-languages",
    type=click.Choice(DETECTION_MODES),
    default="auto",
    show_default=True,
    help="Read words of other languages as such.",
)


code_option = click.option(
    "--code",
    type=click.Choice(CODE_MODES),
    default="skip",
    show_default=True,
    help="Of blocks of code in Markdown: say nothing, the language, or all of it.",
)
emoji_option = click.option(
    "--emoji",
    type=click.Choice(EMOJI_MODES),
    default="name",
    show_default=True,
    help="Say the names of emoji, or leave them out.",
)


def input_format_option(purpose: str) -> Callable[[Function], Function]:
    return click.option("--input-format", type=click.Choice(INPUT_FORMATS), default="text", help=purpose)


def together(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options as one, which `-h` lists in this order."""

    def decorated(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


def entries_of(lexicon: Path | None) -> tuple[LexiconEntry, ...]:
    """What `--lexicon` names; nothing if it was not given."""
    from kokoro_lab.g2p.lexicon_files import read_lexicon

    return read_lexicon(lexicon) if lexicon else ()
