"""JSON files for other programs, written completely or not at all."""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from kokoro_lab.errors import KokoroLabError, ParameterError, ResultError


def finite(value: Any) -> Any:
    """`value` in a form that JSON can hold: NumPy's scalars become plain numbers, and numbers that are not
    finite become None."""
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file that a run left.

    Raises
    ------
    ResultError
        The file cannot be read; the error names it and says why.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(path, f"{type(error).__name__}") from error
    if not isinstance(found, dict):
        raise damaged(path, "it holds no object")
    return found


class FileModel(BaseModel):
    """The content of a JSON file. The fields of a subclass state all allowed keys and their types."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def read(cls, path: Path, error: type[KokoroLabError] = ParameterError, **said: str) -> Self:
        """The content of a file.

        Parameters
        ----------
        error : type of KokoroLabError
            The error that is raised if the file cannot be read; it names the file and the place of the fault.
        said : str
            Further fields of the error.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValueError) as wrong:
            why = f"{type(wrong).__name__}: {wrong}"
            if isinstance(wrong, ValidationError):
                first = wrong.errors(include_url=False)[0]
                why = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
            fields = {"field": path.name, "value": str(path), **said}
            raise error(f"{path.name} cannot be read: {why}.", **fields) from wrong


def damaged(path: Path, why: str) -> ResultError:
    """The error for a damaged file of a run."""
    return ResultError(
        f"{'/'.join(path.parts[-3:])} cannot be read: {why}.",
        field=path.name,
        mend="Take its folder away, or run it again.",
    )


def write_json(path: Path, value: Any) -> None:
    """Write JSON that other programs can read: figures that are not finite become null.

    The file is written beside `path` and then moved into place, so that a reader always finds a whole file.

    Raises
    ------
    OSError
        The folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as making:
        making.write_text(json.dumps(finite(value), indent=1, ensure_ascii=False) + "\n", "utf-8")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A context that gives a temporary name beside `path`. At the end of the block, the file replaces `path`;
    after an error it is deleted."""
    # Beside it, because only within one file system is replacing atomic
    making = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield making
        os.replace(making, path)
    finally:
        making.unlink(missing_ok=True)
