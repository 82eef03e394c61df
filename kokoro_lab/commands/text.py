"""`text`: how a text will be read, without speaking it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from kokoro_lab.commands.completion import languages, offering
from kokoro_lab.commands.options import detection_option, entries_of, input_format_option, lexicon_option


@click.command()
@click.option(
    "--language",
    default="en-us",
    show_default=True,
    help="Language of the text.",
    shell_complete=offering(languages),
)
@input_format_option("What standard input holds; an SSML document may take several lines.")
@detection_option
@lexicon_option
def text(language: str, input_format: str, detect_languages: str, lexicon: Path | None) -> None:
    """Show how each line (or SSML document) of standard input will be read: one JSON object a line."""
    from kokoro_lab.g2p.frontend import FrontEnd
    from kokoro_lab.text.language import resolve_language
    from kokoro_lab.text.ssml import documents_of

    front_end = FrontEnd()
    resolve_language(language)  # before anything is read
    entries = entries_of(lexicon)
    lines = (line.decode("utf-8", "replace").rstrip("\r\n") for line in sys.stdin.buffer)
    for original in documents_of(lines) if input_format == "ssml" else lines:
        described = front_end.describe(original, language, entries, input_format, detect_languages)
        click.echo(json.dumps(described, ensure_ascii=False))
