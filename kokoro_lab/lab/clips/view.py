"""The clips of a run as HTML: what they measure, and what the worst of them look and sound like.

It opens by `file://` and in JupyterLab, and asks for nothing but the sounds. All is drawn here; the script
only plays, and shows where.
"""

from __future__ import annotations

import math
import secrets
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.lab.clips.judged import JudgedClip, KeptClip, Sound, TimedWord
from kokoro_lab.lab.clips.pictures import TICKS_HZ, height_of, spectrogram_png, waveform_path
from kokoro_lab.lab.results.records import Check
from kokoro_lab.lab.results.units import unit_of, words_of

Limits = Mapping[str, tuple[float | None, float | None]]
"""Figure → the least and the most that it may be."""

PIXELS_A_SECOND = 130
"""Narrower, the words under the picture would run into each other."""
NAMED_DOTS = 300
"""So many dots of a figure are named; those of better clips are drawn and no more."""


@dataclass(frozen=True, eq=False)
class ClipsView:
    """What a notebook shows of its clips.

    Parameters
    ----------
    worst : sequence of KeptClip
        Worst first.
    clips : sequence of JudgedClip
        All that were judged, the worst among them, worst first.
    limits : mapping
        Of the figures that are drawn. Where one belongs to a mean over clips, it is there as a guide.
    folder : Path
        The run's. Sounds are named as they lie in it.
    embedded : bool
        Whether the sounds are in the HTML itself: JupyterLab shows no page of that folder.
    """

    worst: Sequence[KeptClip]
    clips: Sequence[JudgedClip]
    limits: Limits
    folder: Path
    embedded: bool = False

    def _repr_html_(self) -> str:
        """A table, plots of the figures that have limits, and a drawer for each of the worst clips."""
        prefix = f"clip-{secrets.token_hex(4)}"
        return (
            f'<div class="kokoro-clips" tabindex="-1"><style>{_own("clips.css")}</style>'
            f'<p>{self._about()}</p><div class="strips">{"".join(map(self._strip, self.limits))}</div>'
            f'<div class="wide">{self._table(prefix)}</div>'
            f"{''.join(self._drawer(kept, f'{prefix}-{i}') for i, kept in enumerate(self.worst))}"
            f"<script>{_own('clips.js')}</script></div>"
        )

    def _about(self) -> str:
        if not self.worst:
            return "No clip was judged."
        count = len(self.clips)
        which = f"The {len(self.worst)} worst of {count}" if count > len(self.worst) else f"All {count}"
        return (
            f"{which} clips, worst first. Click one, or its dot, to hear it. On a name, Enter plays it, "
            "space pauses, ← and → seek, ↑ and ↓ go to its neighbours, and r switches between candidate and "
            "reference."
        )

    def _strip(self, figure: str) -> str:
        """A dot a clip along an axis, limits as lines; the worst are drawn last, and nothing hides them."""
        values = [clip.figures.get(figure, math.nan) for clip in self.clips]
        limits = [limit for limit in self.limits[figure] if limit is not None]
        known = [value for value in values if math.isfinite(value)] + limits
        low, high = min(known, default=0.0), max(known, default=1.0)

        def across(value: float) -> str:
            return f"{2 + 96 * (value - low) / ((high - low) or 1.0):.2f}%"

        drawn = [f'<line x1="{across(at)}" x2="{across(at)}" y1="0" y2="40"/>' for at in limits]
        for place, value in reversed([*enumerate(values)]):
            if math.isfinite(value):
                kind = "dot bad" if self._beyond(figure, value) else "dot"
                number, radius = (f' data-clip="{place}"', 5) if place < len(self.worst) else ("", 3)
                name = f"<title>{escape(self.clips[place].name)}: {value:.4g}</title>"
                drawn.append(
                    f'<circle class="{kind}"{number} cx="{across(value)}" cy="{8 + 7 * (place % 5)}" '
                    f'r="{radius}">{name if place < NAMED_DOTS else ""}</circle>'
                )
        missing = sum(not math.isfinite(value) for value in values)
        title = escape(", ".join([_label(figure), *self._words(figure)]))
        title += f" ({missing} not measured)" if missing else ""
        return (
            f'<figure><figcaption>{title}</figcaption><svg width="100%" height="58" role="img" '
            f'aria-label="{title}; from {low:.3g} to {high:.3g}">{"".join(drawn)}'
            f'<text x="2%" y="55">{low:.3g}</text><text x="98%" y="55" class="end">{high:.3g}</text>'
            "</svg></figure>"
        )

    def _table(self, prefix: str) -> str:
        figures = list(dict.fromkeys(name for kept in self.worst for name in kept.judged.figures))
        heads = "".join(
            f'<th scope="col">{escape(_label(name))}<small>{" and ".join(self._words(name))}</small></th>'
            for name in figures
        )
        rows = "".join(
            f'<tr data-clip="{place}"><th scope="row"><button type="button" aria-expanded="false" '
            f'aria-controls="{prefix}-{place}">{escape(kept.judged.name)}</button></th>'
            + "".join(self._cell(name, kept.judged.figures.get(name, math.nan)) for name in figures)
            + "</tr>"
            for place, kept in enumerate(self.worst)
        )
        return f'<table><thead><tr><th scope="col">clip</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'

    def _cell(self, figure: str, value: float) -> str:
        if not math.isfinite(value):
            return '<td aria-label="not measured">–</td>'
        if self._beyond(figure, value):
            return f'<td class="bad">{value:.4g}<span class="unseen"> beyond its limit</span></td>'
        return f"<td>{value:.4g}</td>"

    def _drawer(self, kept: KeptClip, name: str) -> str:
        clip = kept.judged
        longest_s = max(len(sound.samples) for sound in kept.sounds.values()) / SAMPLE_RATE_HZ
        switch = (
            '<button type="button" class="switch" aria-pressed="false">Hear the reference (r)</button>'
            if "reference" in kept.sounds
            else "<small>There is no reference.</small>"
        )
        sides = "".join(self._side(side, sound, longest_s) for side, sound in kept.sounds.items())
        return (
            f'<section class="drawer" id="{name}" hidden aria-label="{escape(clip.name)}">'
            f"<p><b>{escape(clip.name)}</b>, {escape(clip.voice)}, {escape(clip.language)}: "
            f'<q lang="{escape(clip.language)}">{escape(clip.text)}</q></p>'
            f"{''.join(f'<p>{escape(head)}: {escape(note)}</p>' for head, note in clip.notes.items())}"
            f'<p class="controls"><button type="button" class="play">▶ Play</button> {switch} '
            '<output class="place"></output></p><p role="alert" class="trouble"></p>'
            '<div class="wide" tabindex="0" role="group" aria-label="pictures and words">'
            f'<div style="min-width:{longest_s * PIXELS_A_SECOND:.0f}px">{sides}</div>'
            "</div></section>"
        )

    def _side(self, side: str, sound: Sound, longest_s: float) -> str:
        assert sound.file is not None, "it was kept"
        address = (
            f"data:audio/{sound.file.suffix[1:]};base64,{b64encode(sound.file.read_bytes()).decode()}"
            if self.embedded
            else quote(sound.file.relative_to(self.folder).as_posix())
        )
        length_s = len(sound.samples) / SAMPLE_RATE_HZ
        ticks = "".join(
            f'<span class="tick" style="bottom:{100 * height_of(hz):.1f}%">{hz} Hz</span>' for hz in TICKS_HZ
        )
        path = waveform_path(sound.samples)
        return (
            f'<div class="side {side}" style="width:{100 * length_s / longest_s:.2f}%"'
            f"{' hidden' if side == 'reference' else ''}>"
            f'<audio preload="none" src="{address}" data-length="{length_s:.5f}"></audio><b>{side}</b>'
            f'<svg class="wave" viewBox="0 -100 {path.count("M")} 200" preserveAspectRatio="none" role="img" '
            f'aria-label="waveform"><path d="{path}"/></svg>'
            '<div class="spectrogram"><img alt="spectrogram, 0 to 12 kHz" '
            f'src="{spectrogram_png(sound.samples)}">{ticks}</div>'
            f'<div class="words">{"".join(_words(sound.words, length_s))}</div>'
            '<div class="cursor"></div></div>'
        )

    def _words(self, figure: str) -> list[str]:
        """The limits of a figure in words; none if it has none."""
        return Check(figure, math.nan, *self.limits.get(figure, (None, None))).limits

    def _beyond(self, figure: str, value: float) -> bool:
        return not Check(figure, value, *self.limits.get(figure, (None, None))).passed


def _words(words: Sequence[TimedWord], length_s: float) -> Iterator[str]:
    """Each where it is heard, in two rows by turns, so that short ones can be read."""
    for place, word in enumerate(words):
        later = words[place + 2].start_s if place + 2 < len(words) else length_s
        yield (
            f'<span class="word" data-start="{word.start_s:.3f}" data-end="{word.end_s:.3f}" '
            f'style="left:{100 * word.start_s / length_s:.2f}%;'
            f'max-width:{100 * max(later - word.start_s, 0) / length_s:.2f}%;top:{place % 2 * 2.6}em">'
            f"{escape(word.text)}<small>{escape(getattr(word, 'phonemes', ''))}</small></span>"
        )


def _label(figure: str) -> str:
    """A figure's name and unit: "true peak, dBTP"."""
    unit = unit_of(figure)
    return f"{words_of(figure)}, {unit}" if unit else words_of(figure)


@cache
def _own(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text("utf-8")
