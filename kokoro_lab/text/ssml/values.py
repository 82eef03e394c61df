"""What the attributes of the subset may say, and what that means.

Labels of rate, pitch and breaks are as loud, fast and long as Azure's, which publishes its factors.
"""

from __future__ import annotations

import re

from kokoro_lab.config import PITCH_MAX, PITCH_MIN, RATE_MAX, RATE_MIN
from kokoro_lab.datatypes import PLAIN, SpeakingStyle

MAX_BREAK_S = 10.0
MAX_ROW_S = 60.0
"""Of breaks between which nothing is spoken: longer, a listener takes the speech for ended."""
MAX_BREAKS_S = 600.0
"""Of all breaks of a document: or 4 kB of it would be hours of silence."""
BASE_MIN_HZ, BASE_MAX_HZ = 40.0, 600.0
"""What an average pitch may be set to."""
OFFSET_MAX_HZ = 300.0
SEMITONE = 2 ** (1 / 12)

BREAKS_S = {"none": 0.0, "x-weak": 0.25, "weak": 0.5, "medium": 0.75, "strong": 1.0, "x-strong": 1.25}
RATES = {"x-slow": 0.5, "slow": 0.64, "medium": 1.0, "fast": 1.55, "x-fast": 2.0, "default": 1.0}
PITCHES = {"x-low": 0.55, "low": 0.8, "medium": 1.0, "high": 1.2, "x-high": 1.45, "default": 1.0}
EMPHASIS = {
    "strong": SpeakingStyle(rate=0.8, pitch_scale=SEMITONE**2, gain_db=4.0),
    "moderate": SpeakingStyle(rate=0.88, pitch_scale=SEMITONE**1.5, gain_db=2.5),
    "none": PLAIN,
    "reduced": SpeakingStyle(rate=1.15, pitch_scale=SEMITONE**-1.5, gain_db=-4.0),
}
"""A stressed word is longer, higher and louder (Fry 1955 and 1958 rank the three in this order for pitch,
length and level); misaki's stress marks hardly change a word that is stressed already."""

ALLOWED_STRENGTHS = ", ".join(BREAKS_S)
ALLOWED_TIME = f"seconds or milliseconds such as 250ms or 1.5s, up to {MAX_BREAK_S:g}s"
ALLOWED_BREAKS = f"up to {MAX_ROW_S:g}s of breaks in a row, and up to {MAX_BREAKS_S:g}s in a document"
ALLOWED_RATE = f"{RATE_MIN:.0%} to {RATE_MAX:.0%} of the usual rate, without a sign, or {', '.join(RATES)}"
ALLOWED_PITCH = (
    f"a change such as +10%, -2st or +20Hz, or an average such as 180Hz, within {PITCH_MIN:g} to "
    f"{PITCH_MAX:g} times the voice's own, or {', '.join(PITCHES)}"
)
ALLOWED_EMPHASIS = ", ".join(EMPHASIS)

_NUMBER = r"(?:[0-9]{1,6}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})"
_TIME = re.compile(rf"({_NUMBER})(ms|s)")
_PERCENTAGE = re.compile(rf"({_NUMBER})%")
_CHANGE = re.compile(rf"([+-]{_NUMBER})(%|st|Hz)")
_FREQUENCY = re.compile(rf"({_NUMBER})Hz")


def read_time(value: str) -> float | None:
    """Seconds of `break time`; None if it is none, or too long."""
    match = _TIME.fullmatch(value)
    if not match:
        return None
    seconds = float(match[1]) / (1000 if match[2] == "ms" else 1)
    return seconds if seconds <= MAX_BREAK_S else None


def read_rate(value: str) -> SpeakingStyle | None:
    """The style of `prosody rate`: a percentage is a multiplier, as in SSML 1.1 and not as at Azure's."""
    match = _PERCENTAGE.fullmatch(value)
    rate = float(match[1]) / 100 if match else RATES.get(value)
    return SpeakingStyle(rate=rate) if rate is not None and rate_in_range(rate) else None


def read_pitch(value: str) -> SpeakingStyle | None:
    """The style of `prosody pitch`; None if it is none, or out of range."""
    if value in PITCHES:
        return SpeakingStyle(pitch_scale=PITCHES[value])
    absolute = _FREQUENCY.fullmatch(value)
    if absolute:
        base_hz = float(absolute[1])
        return SpeakingStyle(pitch_base_hz=base_hz) if BASE_MIN_HZ <= base_hz <= BASE_MAX_HZ else None
    change = _CHANGE.fullmatch(value)
    if not change:
        return None
    amount = float(change[1])
    if change[2] == "Hz":
        return SpeakingStyle(pitch_offset_hz=amount) if abs(amount) <= OFFSET_MAX_HZ else None
    # Of many semitones, the power would be infinite
    scale = SEMITONE ** min(amount, 100.0) if change[2] == "st" else 1 + amount / 100
    return SpeakingStyle(pitch_scale=scale) if pitch_in_range(scale) else None


def rate_in_range(rate: float) -> bool:
    """Whether a rate, perhaps of several nested elements, is one that is spoken."""
    return RATE_MIN - 1e-9 <= rate <= RATE_MAX + 1e-9


def pitch_in_range(scale: float) -> bool:
    """Whether a factor of the pitch, perhaps of several nested elements, is one that is spoken."""
    return PITCH_MIN - 1e-9 <= scale <= PITCH_MAX + 1e-9
