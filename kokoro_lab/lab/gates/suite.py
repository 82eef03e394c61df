"""The list of measurements: gates, other notebooks and benchmarks, each in a fast and a full mode.

The list is read from `notebooks/suite.json`. The command that runs gates, the tests of notebooks and the
checklist use the same rows. `CONTRIBUTING.md` says what else a new gate needs.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kokoro_lab.containers.plain_json import FileModel
from kokoro_lab.lab.notebooks import defaults, find_notebook
from kokoro_lab.provenance import repository_root

KINDS = ("gates", "notebooks", "benchmarks")


@dataclass(frozen=True, slots=True)
class Measurement:
    """A notebook or a benchmark, which can be run in two modes.

    Parameters
    ----------
    name : str
        Name of the notebook, or of the benchmark in this list.
    guards : str
        The property that the measurement guarantees while it passes, in one line.
    fast, full : mapping
        Parameters of the notebook, or options of the benchmark, that differ from the defaults.
    fast_s, full_s : float
        About how many seconds a run in each mode takes on two cores.
    variant : str
        The variant that is measured; empty for the variant of the settings.
    instrument : str
        Subcommand of `bench` that runs the benchmark; empty for plain `bench`, which measures time to first
        audio and speed.
    alone : sequence of str
        Modes, `fast` or `full`, in which times decide, so that no other work may run beside the measurement.
    kind : str
        One of `KINDS`. A gate is a notebook that `kokoro-lab run gates` runs.
    """

    name: str
    guards: str
    fast: Mapping[str, Any]
    full: Mapping[str, Any]
    fast_s: int | float
    full_s: int | float
    variant: str = ""
    instrument: str = ""
    alone: Sequence[str] = ()
    kind: str = ""

    @property
    def benchmark(self) -> bool:
        return self.kind == "benchmarks"

    @property
    def folder(self) -> str:
        """The folder in `results/` that has the runs of this measurement."""
        if not self.benchmark:
            return self.name
        return f"bench-{self.instrument}" if self.instrument else "bench"

    def parameters(self, fast: bool) -> Mapping[str, Any]:
        return self.fast if fast else self.full

    def seconds(self, fast: bool) -> float:
        return self.fast_s if fast else self.full_s

    def runs_alone(self, fast: bool) -> bool:
        return ("fast" if fast else "full") in self.alone

    def arguments(self, fast: bool) -> tuple[str, ...]:
        """The arguments of `kokoro-lab` that run the measurement in one mode."""
        given = self.parameters(fast)
        if self.benchmark:
            options = [word for name, value in given.items() for word in _option(name, value)]
            return ("bench", *filter(None, (self.instrument,)), *options)
        return (
            "run",
            self.name,
            *(word for name, value in given.items() for word in ("-p", f"{name}={value}")),
        )

    def command(self, fast: bool) -> str:
        """The command line that runs the measurement in one mode."""
        return shlex.join(("kokoro-lab", *self.arguments(fast)))

    def was_asked(self, recorded: Mapping[str, Any], fast: bool) -> bool:
        """Whether a run that recorded these parameters was this measurement, in this mode.

        The recorded parameters must be the mode's, and the defaults for the rest: a run of other voices or of
        another candidate is no evidence. If a parameter is a path, the run may have recorded only the name of
        the file.
        """
        given = self.parameters(fast)
        expected = (self._plan() if self.benchmark else defaults(find_notebook(self.name))) | dict(given)
        return given.keys() <= recorded.keys() and all(
            _same(value, expected[name]) for name, value in recorded.items() if name in expected
        )

    def _plan(self) -> dict[str, Any]:
        """A benchmark's default options."""
        # Imported here, since benchmarks import much, and this module is also used for a list of names
        from kokoro_lab.lab.bench.plan import SpeechPlan
        from kokoro_lab.lab.bench.verdicts import SERVER_PLANS

        return asdict(SERVER_PLANS.get(self.instrument, SpeechPlan)())


class Suite(FileModel):
    """What `notebooks/suite.json` holds: measurements by their kinds."""

    gates: tuple[Measurement, ...] = ()
    notebooks: tuple[Measurement, ...] = ()
    benchmarks: tuple[Measurement, ...] = ()


def measurements(kind: str | None = None) -> list[Measurement]:
    """The measurements of `notebooks/suite.json`, in its order: all of them, or one kind.

    Raises
    ------
    ParameterError
        There is no such file, or a row in it is wrong.
    """
    listed = Suite.read(repository_root() / "notebooks" / "suite.json")
    found = [replace(row, kind=each) for each in KINDS for row in getattr(listed, each)]
    return [one for one in found if kind in (None, one.kind)]


def _option(name: str, value: Any) -> tuple[str, ...]:
    if name == "streamed":
        return () if value else ("--file",)
    flag = "--" + name.removesuffix("_s").replace("_", "-")
    if isinstance(value, bool):
        return (flag,) if value else ()
    return (flag, str(value))


def _same(recorded: Any, expected: Any) -> bool:
    if isinstance(expected, str):
        return recorded in (expected, Path(expected).name)
    return bool(recorded == expected)
