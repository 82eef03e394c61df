"""The errors that users and machines can cause, each with the field, what is allowed, and how to mend it.

Every error that a user's input or machine can cause is a leaf of `KokoroLabError`. It names the
field, the value, what is allowed and, where there is one, the mend; the command line prints it as
one paragraph, the server puts the same parts into the OpenAI error shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class KokoroLabError(Exception):
    """Base of all errors that kokoro-lab raises on purpose.

    Parameters
    ----------
    message : str
        One sentence: what is wrong.
    field : str, optional
        The request field, setting or file that is wrong, as the user knows it.
    value : Any, optional
        The offending value. Never a whole text: errors are logged, texts are private.
    allowed : str, optional
        The allowed values.
    mend : str, optional
        What to do now.
    """

    code = "kokoro_lab_error"

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        value: Any = None,
        allowed: str | None = None,
        mend: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.value = value
        self.allowed = allowed
        self.mend = mend

    def __str__(self) -> str:
        parts = [self.message]
        if self.allowed:
            parts.append(f"Allowed: {self.allowed}.")
        if self.mend:
            parts.append(self.mend)
        return " ".join(parts)


class InputError(KokoroLabError):
    """The request is wrong; the same request will fail again."""

    code = "invalid_input"


class TextError(InputError):
    """The text cannot be spoken: empty, binary, too long."""

    code = "invalid_text"


class SsmlError(TextError):
    """The SSML is broken, or asks for what is not in the subset that is spoken here.

    Parameters
    ----------
    line, column : int, optional
        Where in the document, both counted from 1; None if the document is too large.
    element, attribute : str, optional
        The element or attribute at fault, named as it is written in the document.
    """

    code = "invalid_ssml"

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        element: str | None = None,
        attribute: str | None = None,
        **details: Any,
    ) -> None:
        place = "" if line is None else f"Line {line}, column {column}: "
        super().__init__(place + message, field="input", **details)
        self.line = line
        self.column = column
        self.element = element
        self.attribute = attribute


class VoiceError(InputError):
    """No such voice, or a blend that does not parse."""

    code = "unknown_voice"


class LexiconError(InputError):
    """An entry or a file of a pronunciation lexicon is wrong."""

    code = "invalid_lexicon"


class LanguageError(InputError):
    """A language that no G2P here speaks."""

    code = "unsupported_language"


class ParameterError(InputError):
    """A parameter of a request, run or command is unknown or out of range."""

    code = "invalid_parameter"


class SettingsError(KokoroLabError):
    """An environment variable or configuration value is wrong."""

    code = "invalid_setting"

    @classmethod
    def of_variable(cls, variable: str, error: KokoroLabError) -> SettingsError:
        """The error that names the environment `variable` whose value led to `error`."""
        return cls(
            f"{variable}: {error.message}",
            field=variable,
            value=error.value,
            allowed=error.allowed,
            mend=error.mend,
        )


class MissingExtra(KokoroLabError, ImportError):
    """A package is missing that an extra of kokoro-lab installs.

    Parameters
    ----------
    extra : str
        Its name in `pyproject.toml`.
    module : str
        The module that could not be imported.
    """

    code = "missing_extra"

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(
            f"{module} is not installed: it comes with the extra `{extra}`.",
            field=extra,
            mend=install(extra),
        )
        self.extra, self.name = extra, module

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str | None]]:
        return MissingExtra, (self.extra, self.name)


INSTALL_AGAIN = "Install it again: pip install --force-reinstall kokoro-lab (in a checkout, `make env`)."


def install(extra: str) -> str:
    """The command that installs an extra of this package."""
    return f"Install it: pip install 'kokoro-lab[{extra}]' (in a checkout, `make env` installs all)."


class WeightsError(KokoroLabError):
    """Model or voice files are missing, corrupt or not available."""

    code = "weights"


class IntegrityError(WeightsError):
    """A file's bytes are not the ones that its SHA-256 promises."""

    code = "weights_corrupt"


class SourceUnavailable(WeightsError):
    """A source of weights does not answer or lacks what it needs (npm, network)."""

    code = "weights_unavailable"


class DiskFull(WeightsError):
    """Not enough room for the weights."""

    code = "disk_full"


class ProviderError(KokoroLabError):
    """An execution provider is missing or cannot run the model."""

    code = "provider"


class OutOfMemory(KokoroLabError):
    """ONNX Runtime has no memory left for a model or for one run of it: the bound that
    `KOKORO_MEMORY_ARENA_SIZE_MB` sets is reached, or the machine's memory is full."""

    code = "out_of_memory"


class FormatUnavailable(KokoroLabError):
    """The installed libraries cannot encode an audio format."""

    code = "format_unavailable"


class SynthesisError(KokoroLabError):
    """The model gave something that must not be played, such as non-finite samples."""

    code = "synthesis_failed"


class PlaybackError(KokoroLabError):
    """Speech cannot be played: no sound card, no player, or one that died."""

    code = "playback_failed"


class DeadlineExceeded(KokoroLabError):
    """A request took longer than it may."""

    code = "deadline_exceeded"


class Interrupted(KokoroLabError):
    """The synthesis was stopped by a client, an operator or a newer request of the same client."""

    code = "cancelled"


class TuningError(KokoroLabError):
    """The tuner cannot go on: it lacks a package, another one is at work, or the defaults cannot speak."""

    code = "tuning"


class Unavailable(KokoroLabError):
    """The server refuses new requests at the moment: it is loading, stopping or short of memory.

    Parameters
    ----------
    retry_after_s : int
        Seconds after which to try again.
    code : str, optional
        The reason, for a program: `server_loading`, `server_stopping` or `memory_short`.
    """

    code = "unavailable"

    def __init__(
        self, message: str, *, retry_after_s: int, code: str = code, mend: str | None = None
    ) -> None:
        super().__init__(message, mend=mend)
        self.retry_after_s = retry_after_s
        self.code = code


class MemoryLimitError(KokoroLabError):
    """The request needs more memory than the server may have."""

    code = "memory_limit"


class Gone(KokoroLabError):
    """A stream cannot be resumed: its token has expired, or belongs to another request."""

    code = "stream_gone"


class AnswersError(KokoroLabError):
    """A file of a listening test is damaged, or belongs to another test."""

    code = "listening_test"

    @classmethod
    def of(cls, file: Path, message: str, mend: str, field: str = "answers") -> AnswersError:
        """The error for `file`, which cannot be used."""
        return cls(message, field=field, value=file.name, mend=mend)


class ResultError(KokoroLabError):
    """A file that a run left cannot be read: damaged, or of another version."""

    code = "damaged_result"


class ServiceError(KokoroLabError):
    """The server cannot be installed as a service, asked about as one, or removed."""

    code = "service"


class GateFailed(KokoroLabError):
    """A notebook's figures broke its pass rule. Raised after the result was written."""

    code = "gate_failed"
