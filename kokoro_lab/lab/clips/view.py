"""The clips of a run as HTML: a table of their figures, and pictures and sounds of the worst.

The page works by `file://` and in JupyterLab, and loads nothing but the sounds. The pictures are drawn here;
the script only plays, and shows the position.
"""

from __future__ import annotations

import math
import secrets
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.lab.clips.judged import JudgedClip, KeptClip, Sound
from kokoro_lab.lab.clips.pictures import TICKS_HZ, height_of, spectrogram_png, waveform_path
from kokoro_lab.lab.markup import filled
from kokoro_lab.lab.results.records import Check

Limits = Mapping[str, tuple[float | None, float | None]]
"""Figure → the least and the most that the figure may be."""

PIXELS_A_SECOND = 130
"""Width of a second of sound, in pixels. In a narrower picture, the words under it would run into each
other."""
NAMED_DOTS = 300
"""How many dots of a figure have a name: those of the worst clips."""


@dataclass(frozen=True, eq=False)
class ClipsView:
    """What a notebook shows of its clips.

    Parameters
    ----------
    worst : sequence of KeptClip
        Worst first.
    clips : sequence of JudgedClip
        All clips that were judged, worst first.
    limits : mapping
        Limits of the figures that are drawn. A limit on a mean over clips is drawn as a guide.
    folder : Path
        The run's folder; paths of sounds are relative to it.
    embedded : bool
        Whether the sounds are in the HTML itself, for JupyterLab, which cannot open files of that folder.
    """

    worst: Sequence[KeptClip]
    clips: Sequence[JudgedClip]
    limits: Limits
    folder: Path
    embedded: bool = False

    def _repr_html_(self) -> str:
        """A table, plots of the figures that have limits, and a part to unfold for each of the worst
        clips."""
        return filled(
            "clips/view",
            prefix=f"clip-{secrets.token_hex(4)}",
            worst=self.worst,
            clips=self.clips,
            strips=[self._strip(figure) for figure in self.limits],
            figures=list(dict.fromkeys(name for kept in self.worst for name in kept.judged.figures)),
            drawers=[self._drawer(kept) for kept in self.worst],
            limits_of=lambda figure: self._check(figure).limits,
            beyond=lambda figure, value: not self._check(figure, value).passed,
            is_finite=math.isfinite,
            nan=math.nan,
            named_dots=NAMED_DOTS,
            pixels_a_second=PIXELS_A_SECOND,
            ticks={hz: height_of(hz) for hz in TICKS_HZ},
        )

    def _check(self, figure: str, value: float = math.nan) -> Check:
        return Check(figure, value, *self.limits.get(figure, (None, None)))

    def _strip(self, figure: str) -> dict[str, Any]:
        """A dot for each clip along an axis, limits as lines; the worst are drawn last, and nothing hides
        them."""
        values = [clip.figures.get(figure, math.nan) for clip in self.clips]
        limits = [limit for limit in self.limits[figure] if limit is not None]
        known = [value for value in values if math.isfinite(value)] + limits
        low, high = min(known, default=0.0), max(known, default=1.0)

        def across(value: float) -> str:
            return f"{2 + 96 * (value - low) / ((high - low) or 1.0):.2f}"

        dots = [
            {
                "place": place,
                "bad": not self._check(figure, value).passed,
                "at": across(value),
                "value": f"{value:.4g}",
            }
            for place, value in reversed([*enumerate(values)])
            if math.isfinite(value)
        ]
        return {
            "figure": figure,
            "missing": len(values) - len(dots),
            "limits": list(map(across, limits)),
            "low": f"{low:.3g}",
            "high": f"{high:.3g}",
            "dots": dots,
        }

    def _drawer(self, kept: KeptClip) -> tuple[JudgedClip, float, list[dict[str, Any]]]:
        sides = [self._side(name, sound) for name, sound in kept.sounds.items()]
        return kept.judged, max(side["length_s"] for side in sides), sides

    def _side(self, name: str, sound: Sound) -> dict[str, Any]:
        assert sound.file is not None, "it was kept"
        address = (
            f"data:audio/{sound.file.suffix[1:]};base64,{b64encode(sound.file.read_bytes()).decode()}"
            if self.embedded
            else quote(sound.file.relative_to(self.folder).as_posix())
        )
        return {
            "name": name,
            "address": address,
            "length_s": len(sound.samples) / SAMPLE_RATE_HZ,
            "path": waveform_path(sound.samples),
            "spectrogram": spectrogram_png(sound.samples),
            "words": sound.words,
        }
