"""`text`: shows how a text will be read, without speaking it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import click

from kokoro_lab.commands.completion import languages, offering
from kokoro_lab.commands.console import decoded_lines, utf8
from kokoro_lab.commands.options import (
    code_option,
    detection_option,
    emoji_option,
    entries_of,
    input_format_option,
    lexicon_option,
)


@click.command()
@click.argument("given", metavar="[TEXT]", required=False)
@click.option(
    "--language",
    default="en-us",
    show_default=True,
    help="Language of the text.",
    shell_complete=offering(languages),
)
@input_format_option("What TEXT is. SSML may have several lines; Markdown is one document.")
@code_option
@emoji_option
@detection_option
@lexicon_option
def text(
    given: str | None,
    language: str,
    input_format: str,
    code: str,
    emoji: str,
    detect_languages: str,
    lexicon: Path | None,
) -> None:
    """Show how each line (or document) of TEXT, or standard input, will be read: one JSON object a line."""
    from kokoro_lab.g2p.frontend import FrontEnd
    from kokoro_lab.text.language import resolve_language
    from kokoro_lab.text.ssml import documents_of

    front_end = FrontEnd()
    resolve_language(language)  # before anything is read
    entries = entries_of(lexicon)
    source = sys.stdin.buffer if given is None or given == "-" else BytesIO(utf8(given))
    lines = decoded_lines(source)
    texts: Iterable[str] = (line.rstrip("\r\n") for line in lines)
    if input_format == "ssml":
        texts = documents_of(texts)
    elif input_format == "markdown":
        texts = ["".join(lines)]
    for original in texts:
        described = front_end.describe(
            original, language, entries, input_format, detect_languages, code=code, emoji=emoji
        )
        click.echo(json.dumps(described, ensure_ascii=False))
