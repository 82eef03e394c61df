"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kokoro_lab.speech.utterance import DETECTION_MODES

if TYPE_CHECKING:
    from kokoro_lab.datatypes import LexiconEntry


def lexicon_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--lexicon", type=click.Path(path_type=Path), help="Pronunciations: a TSV, CSV or JSON file."
    )(function)


def entries_of(lexicon: Path | None) -> tuple[LexiconEntry, ...]:
    """What `--lexicon` names; nothing if it was not given."""
    from kokoro_lab.g2p.lexicon_files import read_lexicon

    return read_lexicon(lexicon) if lexicon else ()


def detection_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--detect-languages",
        type=click.Choice(DETECTION_MODES),
        default="auto",
        show_default=True,
        help="Read words of other languages as such.",
    )(function)


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(function)
