"""The kinds of faults, their random parts, and the scenario files that combine them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kokoro_lab.errors import ParameterError
from kokoro_lab.provenance import repository_root

Seam = Literal["provider", "g2p", "queue", "transport", "memory", "disk"]
Transport = Literal["library", "http", "sse", "websocket"]
OF_CHUNKS = ("chunks_lost", "chunks_reordered")
"""Faults of the connection that need chunks with ids. The client puts them in itself, without a proxy."""
TRANSPORTS: tuple[Transport, ...] = ("library", "http", "sse", "websocket")
"""Ways to get speech: an engine in this process, or our server's raw audio, server-sent events or
WebSocket."""
READY = "ready"
"""Value in place of a scenario's name: no faults for now, but a scenario may be injected while the server
runs."""

Item = TypeVar("Item")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _in_order(low: str, high: str, wrong: str) -> Any:
    """A validator that refuses a model with a field `low` above its field `high`, in the words of `wrong`."""

    def checked(model: Item) -> Item:
        if getattr(model, low) > getattr(model, high):
            raise ValueError(wrong)
        return model

    return model_validator(mode="after")(checked)


class ProviderLost(_Model):
    """The vocoder's run for the window with this number raises, as if its provider had failed."""

    seam: ClassVar[Seam] = "provider"
    kind: Literal["provider_lost"]
    at_window: int = Field(ge=0, le=10_000)


class AllocationFails(_Model):
    """The vocoder's run for the window with this number fails, because ONNX Runtime's arena may grow no
    more."""

    seam: ClassVar[Seam] = "memory"
    kind: Literal["allocation_fails"]
    at_window: int = Field(ge=0, le=10_000)


class Ballast(_Model):
    """An amount of memory is taken from the process while it speaks, as by other programs."""

    seam: ClassVar[Seam] = "memory"
    kind: Literal["ballast"]
    size_mb: int = Field(ge=1, le=65_536)


class G2PStalls(_Model):
    """The G2P does not answer for some time when it is asked for the sentence with this number."""

    seam: ClassVar[Seam] = "g2p"
    kind: Literal["g2p_stalls"]
    at_sentence: int = Field(ge=0, le=10_000)
    stall_s: float = Field(gt=0, le=600)


class ChunksLost(_Model):
    """One chunk in every `one_in` is lost, in the server's queue or on the line.

    The seed of the scenario decides which chunk of each `one_in` is lost.
    """

    kind: Literal["chunks_lost"]
    seam: Literal["queue", "transport"]
    one_in: int = Field(ge=2, le=10_000)


class ChunksReordered(_Model):
    """Chunks overtake each other on the line: in every `one_in` chunks, `window` neighbouring ones come in
    another order.

    The seed of the scenario decides where the window begins, and which order its chunks get.
    """

    seam: ClassVar[Seam] = "transport"
    kind: Literal["chunks_reordered"]
    one_in: int = Field(ge=2, le=10_000)
    window: int = Field(ge=2, le=16)

    _fits = _in_order("window", "one_in", "window is longer than one_in")


class Bursts(_Model):
    """All chunks are held back for a while, again and again, and then arrive together.

    In the queue, a burst imitates another program that takes the processor; on the connection, a bad network.
    The first burst begins within `every_s` of the first chunk, each further one `every_s` after the end of
    the burst before.
    """

    kind: Literal["bursts"]
    seam: Literal["queue", "transport"]
    every_s: float = Field(gt=0, le=600)
    shortest_s: float = Field(gt=0, le=60)
    longest_s: float = Field(gt=0, le=60)

    _ordered = _in_order("shortest_s", "longest_s", "shortest_s is longer than longest_s")


class _OfBytes(_Model):
    """A fault of the connection at one byte of a stream, which the seed draws between two shares of the
    stream's length."""

    seam: ClassVar[Seam] = "transport"
    from_share: float = Field(ge=0, le=1)
    to_share: float = Field(ge=0, le=1)

    _ordered = _in_order("from_share", "to_share", "from_share is above to_share")


class ConnectionCut(_OfBytes):
    """The first connection is reset in the middle of the speech; the next one is not."""

    kind: Literal["connection_cut"]


class ConnectionSilent(_OfBytes):
    """The first connection stays open, and nothing comes over it any more."""

    kind: Literal["connection_silent"]


class Throttled(_Model):
    """The line carries only a limited number of bytes a second."""

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
    """Faults that are injected together, and the transports that can meet them.

    Parameters
    ----------
    name : str
        Name of the scenario and its file.
    title : str
        What happens, in a line.
    seed : int
        Seed of everything that is drawn at random.
    transports : tuple of {"library", "http", "sse", "websocket"}
    faults : tuple of Fault
    may_end_in_error : tuple of the same
        Transports for which a clear error is enough, and complete speech is not required.
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
        """The faults of these seams."""
        return tuple(fault for fault in self.faults if fault.seam in seams)


# ---------------------------------------------------------------------------- what is left to chance
# Drawn from a scenario's seed: the same seed, the same faults.


class Losses:
    """Decides which chunks are lost: one in every `one_in`, at a place that the seed draws."""

    def __init__(self, fault: ChunksLost, seed: int) -> None:
        self._one_in = fault.one_in
        self._seed = seed
        self._counted = 0
        self.struck = 0

    def next(self) -> bool:
        """Whether the next chunk is lost."""
        run, place = divmod(self._counted, self._one_in)
        self._counted += 1
        lost = place == random.Random(f"{self._seed} {run}").randrange(self._one_in)
        self.struck += lost
        return lost

    def over(self, chunks: Iterable[Item]) -> Iterator[Item]:
        """Pass on those of `chunks` that are not lost; the count continues from one connection to the
        next."""
        return (chunk for chunk in chunks if not self.next())


class Shuffles:
    """The chunks of a stream in another order, here and there."""

    def __init__(self, fault: ChunksReordered, seed: int) -> None:
        self._fault = fault
        self._seed = seed
        self._counted = 0
        self.struck = 0

    def over(self, chunks: Iterable[Item]) -> Iterator[Item]:
        """Pass on `chunks`, each of them once; the count continues from one connection to the next.

        If `chunks` breaks off, the chunks that are still held are lost.
        """
        held: list[Item] = []
        for chunk in chunks:
            run, place = divmod(self._counted, self._fault.one_in)
            self._counted += 1
            draw = random.Random(f"{self._seed} {run}")
            first = draw.randrange(self._fault.one_in - self._fault.window + 1)
            if not first <= place < first + self._fault.window:
                yield chunk
                continue
            held.append(chunk)
            if place == first + self._fault.window - 1:
                yield from self._shuffled(held, draw)
                held = []
        yield from held

    def _shuffled(self, held: list[Item], draw: random.Random) -> list[Item]:
        self.struck += 1
        order = list(range(len(held)))
        while order == sorted(order) and len(order) > 1:
            draw.shuffle(order)
        return [held[place] for place in order]


class Holds:
    """Decides when all chunks are held back, and for how long."""

    def __init__(self, fault: Bursts, seed: int) -> None:
        self._fault = fault
        self._draw = random.Random(seed)
        self._next_s: float | None = None

    def next_s(self, now_s: float) -> float:
        """Seconds by which to delay a chunk that comes at `now_s`, on any clock; mostly 0."""
        if self._next_s is None:
            self._next_s = now_s + self._draw.uniform(0, self._fault.every_s)
        if now_s < self._next_s:
            return 0.0
        held_s = self._draw.uniform(self._fault.shortest_s, self._fault.longest_s)
        self._next_s = now_s + held_s + self._fault.every_s
        return held_s


# ---------------------------------------------------------------------------- files


def read_scenario(text: str | bytes, name: str) -> Scenario:
    """A scenario from JSON. `name` says in errors where the JSON is from.

    Raises
    ------
    ParameterError
        The JSON is no scenario; the error names the field.
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
    """A scenario: one of `fixtures/faults/` by its name, or any by the path of its file.

    Raises
    ------
    ParameterError
        No scenario has this name, or its file is wrong; the error names the file and the field.
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
    """The scenarios with these names, which are separated by commas; without a name, all of
    `fixtures/faults/`.

    Raises
    ------
    ParameterError
        In the cases in which `load_scenario` raises it.
    """
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    return [
        load_scenario(name) for name in chosen or sorted(p.stem for p in scenarios_folder().glob("*.json"))
    ]
