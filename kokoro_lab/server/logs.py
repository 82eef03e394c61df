"""The server's log: a JSON object a line. It holds lengths, hashes and figures, and never a text."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from gunicorn.glogging import Logger as GunicornLogger

from kokoro_lab.plain_json import finite
from kokoro_lab.server.errors import where

Format = Literal["json", "text"]
_FIELDS = "fields"


class JsonLines(logging.Formatter):
    """`at`, `level`, `logger`, `message`, and the fields that were given with it.

    Of an exception only types and stacks are written: its message may quote what a client sent.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            entry["where"] = where(record.exc_info[1])
        return json.dumps(finite(entry), ensure_ascii=False, default=str)


class PlainLines(logging.Formatter):
    """The same for people: one line of words, then the fields as `name=value`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        stamp = f"{self.formatTime(record)} {record.levelname} {record.name}: {record.getMessage()}"
        fields = getattr(record, _FIELDS, {})
        line = " ".join((stamp, *(f"{name}={value}" for name, value in fields.items())))
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + where(record.exc_info[1])
        return line


def formatter(kind: Format) -> logging.Formatter:
    """The formatter of that name."""
    return JsonLines() if kind == "json" else PlainLines()


def with_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """What to hand to `log.info(..., extra=...)` so that the line holds `fields`."""
    return {_FIELDS: fields}


def configure(kind: Format, *, verbose: bool) -> None:
    """Log to standard error: warnings of everybody, and our own from `info`, or `debug`, on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(kind))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("kokoro_lab").setLevel(logging.DEBUG if verbose else logging.INFO)


class JsonGunicorn(GunicornLogger):  # type: ignore[misc]
    """gunicorn's own lines in the shape of ours."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonLines())
