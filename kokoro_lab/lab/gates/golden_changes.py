"""Recording golden clips anew, with evidence of what that changes: figures, a picture, and both sounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kokoro_lab.audio import write_whole
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab import plots
from kokoro_lab.lab.gates.golden import Take, as_it_ships, compare
from kokoro_lab.lab.gates.golden_clips import GoldenClip, speak
from kokoro_lab.lab.gates.golden_files import GoldenFolder, flac_bytes, record
from kokoro_lab.lab.results import write_json
from kokoro_lab.speech.engine import Engine


@dataclass(frozen=True, slots=True)
class ClipChange:
    """What recording one clip anew changed.

    Parameters
    ----------
    name : str
        Of the recording.
    difference : dict
        A row of `golden.measure`; empty where there was no recording before.
    files : tuple of Path
        `<name>-after.flac`, and if there was one before, `<name>-before.flac` and `<name>.png`.
    """

    name: str
    difference: dict[str, Any]
    files: tuple[Path, ...]

    def __str__(self) -> str:
        if not self.difference:
            return f"{self.name}: recorded for the first time"
        row = self.difference
        kept = [row[f"same_{what}"] for what in ("request", "weights", "reading")]
        changed = [
            what for what, same in zip(("request", "weights", "reading"), kept, strict=True) if not same
        ]
        changed += [f"build ({row['differs']})"] if row["differs"] else []
        return (
            f"{self.name}: {row['length_share']:+.2%} long, words ±{row['word_difference_s']:.3f} s, "
            f"fingerprint {row['fingerprint_share']:.4f}, {row['loudness_difference_lu']:+.2f} LU, "
            f"residual {row['residual_peak_dbfs']:.0f} dBFS; changed: {', '.join(changed) or 'nothing else'}"
        )


def names_of(golden: GoldenFolder, wanted: Sequence[str]) -> list[str]:
    """Names of recordings, from names of cases (all their variants) or of recordings, in the plan's order.

    Raises
    ------
    ParameterError
        One that is neither.
    """
    known = {case.name for case in golden.cases} | set(golden.planned)
    for name in wanted:
        if name not in known:
            raise ParameterError(
                f"There is no golden case {name!r}.",
                field="CASE",
                value=name,
                allowed=", ".join(case.name for case in golden.cases) + ", each also with -<variant>",
                mend="New ones are written into golden/plan.json first.",
            )
    return [name for name, (case, _) in golden.planned.items() if {name, case.name} & set(wanted)]


def record_anew(
    golden: GoldenFolder, names: Sequence[str], folder: Path, engine_of: Callable[[str], Engine] = as_it_ships
) -> list[ClipChange]:
    """Speak the recordings `names`, keep evidence in `folder`, then put them in place of those before.

    Nothing in `golden/` changes before all of them are spoken.
    """
    spoken: list[GoldenClip] = []
    for variant in dict.fromkeys(golden.planned[name][1] for name in names):
        engine = engine_of(variant)
        spoken += [
            speak(engine, *golden.planned[name]) for name in names if golden.planned[name][1] == variant
        ]
    folder.mkdir(parents=True, exist_ok=True)
    changes = [_evidence(golden, each, folder) for each in spoken]
    write_json(folder / "difference.json", {change.name: change.difference for change in changes})
    record(golden, spoken)
    return changes


def _evidence(golden: GoldenFolder, after: GoldenClip, folder: Path) -> ClipChange:
    name = after.recording.name
    heard_after = write_whole(folder / f"{name}-after.flac", flac_bytes(after.samples))
    if name not in golden.there:
        return ClipChange(name, {}, (heard_after,))
    before = golden.spoken(name)
    heard_before = write_whole(folder / f"{name}-before.flac", golden.path(name).read_bytes())
    picture = folder / f"{name}.png"
    plots.spectrograms_compared(before.samples, after.samples, SAMPLE_RATE_HZ).savefig(picture, dpi=100)
    return ClipChange(name, compare(Take(before, after)), (heard_before, heard_after, picture))
