"""What commands share: reading text, notes on standard error, and printed answers."""

from __future__ import annotations

import json
import os
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from kokoro_lab.errors import ParameterError, TextError

DONE, FAILED, WRONG, BROKE = 0, 1, 2, 3
BYTE_ORDER_MARK = "\ufeff"
INTERRUPTED = 130
"""The exit code that shells report for a program that Ctrl-C has ended."""


def say(line: str) -> None:
    """Print a note on standard error; standard output holds only the answer."""
    click.echo(line, err=True)


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def require_one_text(text: str | None, file: Path | None) -> None:
    """Refuse a text that is given twice: neither of the two may be left unspoken in silence."""
    if text is not None and file is not None:
        raise ParameterError("Give the text or -i, not both; -i takes one file.", field="--input")


def text_of(text: str | None, file: Path | None) -> str:
    """The text to speak: the argument, a file or standard input, decoded as UTF-8."""
    if text is not None and text != "-":
        return decoded(utf8(text))
    if file is None and sys.stdin.isatty():
        raise TextError("There is no text.", field="TEXT", mend="Give it as an argument, by -i or by a pipe.")
    try:
        raw = file.read_bytes() if file else sys.stdin.buffer.read()
    except OSError as error:
        raise TextError(
            f"{file} cannot be read: {error.strerror}.", field="--input", value=str(file)
        ) from error
    return decoded(raw).removeprefix(BYTE_ORDER_MARK)


def utf8(text: str) -> bytes:
    """A text of the command line in UTF-8. Python hands over bytes that are no UTF-8 as surrogates; here they
    are those bytes again."""
    return text.encode("utf-8", "surrogateescape")


def decoded(raw: bytes, offset_bytes: int = 0) -> str:
    """`raw` decoded as UTF-8; `offset_bytes` is where it begins in the input.

    Raises
    ------
    TextError
        The bytes are no UTF-8; the error names the first that is none, counted from the input's beginning.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise TextError(
            f"The input is not UTF-8: byte {offset_bytes + error.start} cannot be read.",
            field="input",
            mend="Convert it, for example with iconv.",
        ) from error


def decoded_lines(source: BinaryIO) -> Iterator[str]:
    """The lines of `source` as they come, each decoded by `decoded`."""
    offset_bytes = 0
    for line in source:
        yield decoded(line, offset_bytes)
        offset_bytes += len(line)


def text_as_written(source: BinaryIO, tee: Callable[[str], None] = lambda text: None) -> Iterator[str]:
    """The text that a program writes into a pipe, as it comes, decoded as UTF-8; `tee` gets a copy.

    Raises
    ------
    TextError
        The bytes are no UTF-8.
    """
    decoder = getincrementaldecoder("utf-8-sig")()
    while True:
        raw = os.read(source.fileno(), 65_536)
        try:
            text = decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise TextError(
                "The input is not UTF-8.", field="input", mend="Convert it, for example with iconv."
            ) from error
        if text:
            tee(text)
            yield text
        if not raw:
            return


def show(lines: Iterable[str], record: Any, as_json: bool) -> None:
    """Print an answer. With `as_json`, for programs: `record` as JSON or, if `record` is a path, the JSON
    file there. Otherwise, for people: `lines`."""
    if not as_json:
        click.echo("\n".join(lines))
    elif isinstance(record, Path):
        click.echo(record.read_text("utf-8"))
    else:
        from kokoro_lab.containers.plain_json import finite

        click.echo(json.dumps(finite(record), default=str))
