"""Which faults there are, and the files that say what is put in where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kokoro_lab.errors import ParameterError
from kokoro_lab.provenance import repository_root

Seam = Literal["provider", "g2p", "queue", "transport", "memory", "disk"]
Transport = Literal["library", "http", "sse", "websocket"]
OF_CHUNKS = ("chunks_lost", "chunks_reordered")
"""Faults of the line that strike only what has ids, and need no proxy: a client puts them in itself."""
TRANSPORTS: tuple[Transport, ...] = ("library", "http", "sse", "websocket")
"""In this process; and of our server, the bare bytes of audio, events, and a WebSocket."""
READY = "ready"
"""In place of a scenario: none for now, but one may be put in while the server runs."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ProviderLost(_Model):
    """A run of the vocoder raises, as one does whose provider has gone: the window with this number."""

    seam: ClassVar[Seam] = "provider"
    kind: Literal["provider_lost"]
    at_window: int = Field(ge=0, le=10_000)


class AllocationFails(_Model):
    """ONNX Runtime runs out of a bounded arena in place of the window with this number."""

    seam: ClassVar[Seam] = "memory"
    kind: Literal["allocation_fails"]
    at_window: int = Field(ge=0, le=10_000)


class Ballast(_Model):
    """So much memory is taken away from the process, as others on the machine would, while it speaks."""

    seam: ClassVar[Seam] = "memory"
    kind: Literal["ballast"]
    size_mb: int = Field(ge=1, le=65_536)


class G2PStalls(_Model):
    """The G2P does not answer for so long when it is asked for the sentence with this number."""

    seam: ClassVar[Seam] = "g2p"
    kind: Literal["g2p_stalls"]
    at_sentence: int = Field(ge=0, le=10_000)
    stall_s: float = Field(gt=0, le=600)


class ChunksLost(_Model):
    """One chunk in so many is lost: in the server's queue, where it has just been made, or on the line.

    Which one of each `one_in` is drawn from the scenario's seed.
    """

    kind: Literal["chunks_lost"]
    seam: Literal["queue", "transport"]
    one_in: int = Field(ge=2, le=10_000)


class ChunksReordered(_Model):
    """Chunks overtake each other on the line: of each `one_in`, a `window` of so many comes in another order.

    Where the window begins, and which order that is, is drawn from the scenario's seed.
    """

    seam: ClassVar[Seam] = "transport"
    kind: Literal["chunks_reordered"]
    one_in: int = Field(ge=2, le=10_000)
    window: int = Field(ge=2, le=16)

    @model_validator(mode="after")
    def _fits(self) -> ChunksReordered:
        if self.window > self.one_in:
            raise ValueError("window is longer than one_in")
        return self


class Bursts(_Model):
    """Everything is held up for a while, again and again: what comes meanwhile arrives at once afterwards.

    In the queue, as by another program that takes the processor; on the line, as by a bad network. The first
    one begins within `every_s` of the first chunk, each further one that long after the end of the last.
    """

    kind: Literal["bursts"]
    seam: Literal["queue", "transport"]
    every_s: float = Field(gt=0, le=600)
    shortest_s: float = Field(gt=0, le=60)
    longest_s: float = Field(gt=0, le=60)

    @model_validator(mode="after")
    def _in_order(self) -> Bursts:
        if self.shortest_s > self.longest_s:
            raise ValueError("shortest_s is longer than longest_s")
        return self


class _OfBytes(_Model):
    """Where in a stream the line fails: drawn from the seed, between two shares of its bytes."""

    seam: ClassVar[Seam] = "transport"
    from_share: float = Field(ge=0, le=1)
    to_share: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _in_order(self) -> _OfBytes:
        if self.from_share > self.to_share:
            raise ValueError("from_share is above to_share")
        return self


class ConnectionCut(_OfBytes):
    """The first connection is reset in the middle of the speech; the next one stands."""

    kind: Literal["connection_cut"]


class ConnectionSilent(_OfBytes):
    """The first connection stays open, and nothing comes over it any more."""

    kind: Literal["connection_silent"]


class Throttled(_Model):
    """The line takes only so many bytes a second."""

    seam: ClassVar[Seam] = "transport"
    kind: Literal["throttled"]
    bytes_per_s: int = Field(ge=1_000)


class DiskRefuses(_Model):
    """Nothing can be written: the disk is full, or not ours to write to."""

    seam: ClassVar[Seam] = "disk"
    kind: Literal["disk_refuses"]
    because: Literal["full", "unwritable"]


AnyFault = (
    ProviderLost
    | AllocationFails
    | Ballast
    | G2PStalls
    | ChunksLost
    | ChunksReordered
    | Bursts
    | ConnectionCut
    | ConnectionSilent
    | Throttled
    | DiskRefuses
)
Fault = Annotated[AnyFault, Field(discriminator="kind")]


class Scenario(_Model):
    """Faults that are put in together, and by which transports they can be met.

    Parameters
    ----------
    name : str
        Of the scenario and its file.
    title : str
        What happens, in a line.
    seed : int
        Of everything that is drawn.
    transports : tuple of {"library", "http", "sse", "websocket"}
    faults : tuple of Fault
    may_end_in_error : tuple of the same
        Transports by which a clear error is all that can be had, and whole speech is not asked for.
    """

    name: str = Field(pattern=r"^[a-z0-9_]{1,60}$")
    title: str = Field(min_length=1, max_length=200)
    seed: int = Field(ge=0)
    transports: tuple[Transport, ...] = Field(min_length=1)
    faults: tuple[Fault, ...] = Field(min_length=1)
    may_end_in_error: tuple[Transport, ...] = ()

    @model_validator(mode="after")
    def _can_be_met(self) -> Scenario:
        if len(set(self.transports)) < len(self.transports):
            raise ValueError("a transport is named twice")
        line = [fault for fault in self.faults if fault.seam == "transport"]
        if "library" in self.transports and any(fault.kind not in OF_CHUNKS for fault in line):
            raise ValueError("the library has no line that could fail")
        if "http" in self.transports and any(fault.kind in OF_CHUNKS for fault in line):
            raise ValueError("bare bytes carry no ids, so that nobody could tell where a chunk belongs")
        return self

    def of_seam(self, *seams: Seam) -> tuple[AnyFault, ...]:
        """Those of its faults that are put in there."""
        return tuple(fault for fault in self.faults if fault.seam in seams)


def read_scenario(text: str | bytes, name: str) -> Scenario:
    """A scenario from JSON; `name` is what it came from, for the error.

    Raises
    ------
    ParameterError
        It is none; names the field.
    """
    try:
        return Scenario.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "scenario"
        raise ParameterError(
            f"{name}: {place} is not valid: {first['msg']}.",
            field=place,
            value=name,
            mend="`kokoro_lab/lab/faults/scenario.py` says what each fault takes.",
        ) from error


def scenarios_folder() -> Path:
    """`fixtures/faults/` of the repository."""
    return repository_root() / "fixtures" / "faults"


def load_scenario(name: str | Path) -> Scenario:
    """One of `fixtures/faults/`, by its name; or any, by the path of its file.

    Raises
    ------
    ParameterError
        There is no such scenario, or its file is wrong; names the file and the field.
    """
    path = Path(name) if str(name).endswith(".json") else scenarios_folder() / f"{name}.json"
    if not path.is_file():
        raise ParameterError(
            f"There is no fault scenario {str(name)!r}.",
            field="scenario",
            value=str(name),
            allowed=f"{', '.join(sorted(p.stem for p in scenarios_folder().glob('*.json')))}, or a file",
        )
    scenario = read_scenario(path.read_bytes(), path.name)
    if scenario.name != path.stem:
        raise ParameterError(
            f"{path.name}: name is {scenario.name!r}.", field="name", value=scenario.name, allowed=path.stem
        )
    return scenario


def load_scenarios(names: str = "") -> list[Scenario]:
    """Those named, with commas; all of `fixtures/faults/` if none is.

    Raises
    ------
    ParameterError
        As `load_scenario`.
    """
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    return [
        load_scenario(name) for name in chosen or sorted(p.stem for p in scenarios_folder().glob("*.json"))
    ]
