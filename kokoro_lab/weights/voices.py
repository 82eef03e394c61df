"""Voice packs, blends of them, and the row of a pack for each segment."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import IntegrityError, VoiceError
from kokoro_lab.text.language import why_not_read
from kokoro_lab.text.tables import names
from kokoro_lab.weights.store import voice_names, voice_path

PACK_ROWS, STYLE_SIZE = 510, 256
PACK_SHAPE = (PACK_ROWS, 1, STYLE_SIZE)

REFERENCE_TOKENS = 100
"""A usual length of a segment in token ids: a sentence of 6 s."""
MEASURED_TOKENS = (50, 300)
"""The range of lengths, in token ids, in which loudness was measured. For shorter and longer segments, the
loudness at the nearer end is used."""
ENERGY_LU = 1.5
"""How many LU louder a segment is for each unit of energy above its voice's usual energy. Fitted on 206
segments at speeds of 0.5 to 2: their loudness is predicted with an error of 0.41 LU, without this term with
one of 0.50 LU."""
ENERGY_SLOPE = -0.18
"""By how much the energy of a segment changes if it has twice as many ids, over 54 voices."""

_NAMES = names(__package__, "voices.tsv")
OPENAI_VOICES = _NAMES["openai voice"]
"""OpenAI's thirteen names, so that a client that cannot name ours still gets thirteen voices."""

LANGUAGE_OF_PREFIX = _NAMES["language"]
"""The first letter of a Kokoro voice's name → its language. The second letter is the gender."""
GENDERS = {"f": "female", "m": "male"}


def unread_voices() -> dict[str, str]:
    """Voices whose own language cannot be read here, and why. They speak only texts for which another
    language is named."""
    reasons = {prefix: why_not_read(language) for prefix, language in LANGUAGE_OF_PREFIX.items()}
    return {name: reason for name in voice_names() if (reason := reasons[name[0]]) is not None}


def reading_voices() -> tuple[str, ...]:
    """Voices whose own language can be read here: those offered to clients, which may name no language."""
    unread = unread_voices()
    return tuple(name for name in voice_names() if name not in unread)


def english_of(voice: str) -> str:
    """The language tag by which a voice, or a blend, reads an English text: voices of other languages read it
    as Americans do."""
    return "en-gb" if voice.startswith("b") else "en-us"


def language_of(spec: str) -> str:
    """The language of a voice, or of the first one of a blend.

    Raises
    ------
    VoiceError
        As `parts_of`.
    """
    (first, _), *_ = parts_of(spec)
    return LANGUAGE_OF_PREFIX[first[0]]


MOST_KEPT = 64
_PART = re.compile(r"\s*([a-z]\w*)\s*(?:\(\s*(\d+(?:\.\d+)?)\s*\))?\s*", re.IGNORECASE)
MAX_BLEND = 8
WEIGHTS_BELOW = 10_000
"""Limit of a voice's weight in a blend. Far larger ones add up to infinity, and the blend to no numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """One voice or blend.

    Parameters
    ----------
    name : str
        Canonical: aliases resolved, weights written out where they are not all 1.
    parts : tuple of str
        The plain voices that it is made of.
    language : str
        Language of the voice; for a blend, of its first part.
    pack : numpy.ndarray
        float32, shape (510, 1, 256), read-only.
    level_lufs : float
        Average loudness of the model's output with this voice, in LUFS, in segments of `REFERENCE_TOKENS`
        ids. The gain to the target loudness is computed from it.
    level_slope_lu : float
        Change of loudness for segments of twice that length: negative, since long segments are spoken softer.
    usual_energy : float, optional
        The mean of `DecodedSegment.energy` in segments of that length.
    """

    name: str
    parts: tuple[str, ...]
    language: str
    pack: npt.NDArray[np.float32]
    level_lufs: float
    level_slope_lu: float = 0.0
    usual_energy: float | None = None

    def level_at(self, token_count: int, energy: float | None = None) -> float:
        """Average loudness in LUFS of segments of `token_count` ids (without pads); with `energy`, of
        segments with this energy."""
        fewest, most = MEASURED_TOKENS
        octaves = float(np.log2(min(max(token_count, fewest), most) / REFERENCE_TOKENS))
        lufs = self.level_lufs + self.level_slope_lu * octaves
        if energy is None or self.usual_energy is None:
            return lufs
        return lufs + ENERGY_LU * (energy - self.usual_energy - ENERGY_SLOPE * octaves)

    def style(self, token_count: int) -> npt.NDArray[np.float32]:
        """The style vector for a segment of `token_count` token ids (without pads): float32 (1, 256).

        A pack has 510 rows, for 1 to 510 ids. Row `token_count - 1` is taken, as in the pipeline of hexgrad,
        who published the model (`pack[len(ps) - 1]`), and in kokoro-onnx 0.6.1.
        """
        row: npt.NDArray[np.float32] = self.pack[token_count - 1]
        return row


class VoiceCache:
    """Reads the voice of a name or a blend, and keeps the last ones used. Thread-safe.

    Parameters
    ----------
    load : callable
        Reads a voice.
    """

    def __init__(self, load: Callable[[str], Voice]) -> None:
        self._load = lru_cache(MOST_KEPT)(load)

    def __call__(self, spec: str) -> Voice:
        return self._load(spec)

    def __len__(self) -> int:
        return self._load.cache_info().currsize

    def clear(self) -> None:
        self._load.cache_clear()


def load_voice(spec: str, home: Path | None = None) -> Voice:
    """The voice that `spec` names: `af_heart`, `alloy`, or a blend such as `af_bella(2)+af_sky(1)`.

    A blend is the weighted mean of its packs; weights default to 1 and need not add up to 1.

    Raises
    ------
    VoiceError
        Unknown name (with the nearest ones), or a blend that does not parse.
    WeightsError
        The pack is not in the cache.
    """
    parts = list(parts_of(spec))
    total = sum(weight for _, weight in parts)
    packs = [_pack(name, home) for name, _ in parts]
    pack = sum(
        (p * np.float32(weight / total) for p, (_, weight) in zip(packs, parts, strict=True)),
        start=np.zeros(PACK_SHAPE, np.float32),
    )
    if len(parts) == 1:
        pack = packs[0]
    pack.flags.writeable = False
    plain = all(weight == parts[0][1] for _, weight in parts)
    return Voice(
        name="+".join(name if plain else f"{name}({weight:g})" for name, weight in parts),
        parts=tuple(name for name, _ in parts),
        language=language_of(spec),
        pack=pack,
        level_lufs=sum(level_lufs(name) * weight for name, weight in parts) / total,
        level_slope_lu=sum(level_slope_lu(name) * weight for name, weight in parts) / total,
        usual_energy=sum(usual_energy(name) * weight for name, weight in parts) / total,
    )


def parts_of(spec: str) -> Iterator[tuple[str, float]]:
    """The voices that `spec` names, each with its weight in the blend.

    Raises
    ------
    VoiceError
        Unknown name (with the nearest ones), a blend that does not parse, or weights that add up to nothing.
    """
    parts = spec.split("+")
    total = 0.0
    if len(parts) > MAX_BLEND:
        raise VoiceError(
            f"A blend of {len(parts)} voices is too many.",
            field="voice",
            value=len(parts),
            allowed=f"up to {MAX_BLEND}",
        )
    for part in parts:
        match = _PART.fullmatch(part)
        if not match:
            raise VoiceError(
                f"The voice {spec[:80]!r} cannot be read.",
                field="voice",
                value=spec[:80],
                allowed="a name, or names with weights joined by '+', such as af_bella(2)+af_sky(1)",
            )
        name = match[1].lower()
        name = OPENAI_VOICES.get(name, name)
        if name not in voice_names():
            near = difflib.get_close_matches(name, [*voice_names(), *OPENAI_VOICES], n=3, cutoff=0.4)
            meant = f"Did you mean one of {', '.join(near)}? " if near else ""
            raise VoiceError(
                f"There is no voice {match[1]!r}.",
                field="voice",
                value=match[1],
                mend=f"{meant}`kokoro-lab fetch --list` lists all of them.",
            )
        weight = float(match[2] or 1)
        if weight >= WEIGHTS_BELOW:
            raise VoiceError(
                f"The weight of {name} is too large.",
                field="voice",
                value=match[2][:80],
                allowed=f"below {WEIGHTS_BELOW}",
            )
        total += weight
        yield name, weight
    if total <= 0:
        raise VoiceError(f"The weights of {spec!r} add up to nothing.", field="voice", value=spec)


def _pack(name: str, home: Path | None) -> npt.NDArray[np.float32]:
    path = voice_path(name, home)
    pack = np.fromfile(path, dtype="<f4").astype(np.float32, copy=False)
    if pack.size != PACK_ROWS * STYLE_SIZE or not np.isfinite(pack).all():
        raise IntegrityError(
            f"{path.name} is not a voice pack.",
            field="voice",
            value=name,
            mend="Run `kokoro-lab fetch --force`.",
        )
    return pack.reshape(PACK_SHAPE)


@cache
def _levels() -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = json.loads(
        files(__package__).joinpath("voice_levels.json").read_text()
    )
    return table


def level_lufs(name: str) -> float:
    """Average loudness of one plain voice before any gain in segments of `REFERENCE_TOKENS` ids, measured by
    notebook `50_voice_levels`."""
    return _levels()["lufs"][name]


def level_slope_lu(name: str) -> float:
    """Change of a plain voice's loudness for segments of twice as many ids; measured by the same notebook."""
    return _levels()["slope_lu"][name]


def usual_energy(name: str) -> float:
    """The mean predicted energy of a plain voice in segments of `REFERENCE_TOKENS` ids; measured by the same
    notebook."""
    return _levels()["energy"][name]
