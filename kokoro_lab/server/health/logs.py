"""The server's log, JSON objects or plain lines. It has lengths, hashes and figures, and never a text."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal

from gunicorn.glogging import Logger as GunicornLogger

from kokoro_lab.containers.plain_json import finite
from kokoro_lab.server.http.errors import where

log = logging.getLogger(__name__)

Format = Literal["json", "text"]
_FIELDS = "fields"


class JsonLines(logging.Formatter):
    """Writes a line of the log as JSON: `at`, `level`, `logger`, `message`, and the fields that were given
    with it.

    For an exception, only types and stacks are written, since its message may quote what a client sent.
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
    """The log for people: a line of words, then the fields as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = f"{self.formatTime(record)} {record.levelname} {record.name}: {record.getMessage()}"
        fields = getattr(record, _FIELDS, {})
        line = " ".join((stamp, *(f"{name}={value}" for name, value in fields.items())))
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + where(record.exc_info[1])
        return line


def with_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The `extra` of `log.info(..., extra=...)` that puts `fields` into the line."""
    return {_FIELDS: fields}


def configure(kind: Format, *, verbose: bool) -> None:
    """Log to standard error: warnings of all libraries, and our own messages from `info` (or `debug`) on.

    An earlier configuration of logging, such as that of the command line, is removed: otherwise this one
    would have no effect. Warnings and uncaught exceptions, which Python would print, are logged too, so that
    all output is JSON.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else PlainLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("kokoro_lab").setLevel(logging.DEBUG if verbose else logging.INFO)
    warnings.showwarning = _log_warning
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda died: _log_uncaught(died.exc_type, died.exc_value, died.exc_traceback)
    sys.unraisablehook = lambda died: _log_uncaught(died.exc_type, died.exc_value, died.exc_traceback)


def _log_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    """Log a library's warning by kind and place: its message may quote what a client sent."""
    log.warning("%s in %s, line %d", category.__name__, filename, lineno)


def _log_uncaught(
    kind: type[BaseException], error: BaseException | None, stack: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    log.error("%s, which nobody caught", kind.__name__, exc_info=(kind, error or kind(), stack))


class OurGunicorn(GunicornLogger):  # type: ignore[misc]
    """gunicorn's logger, whose lines go to the log that `configure` set up."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True
