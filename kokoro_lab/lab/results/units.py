"""Splits the names of figures into words and units for readers: `true_peak_dbtp` is "true peak" in dBTP."""

from __future__ import annotations

import math

from kokoro_lab.text.tables import rows

_UNITS = {row["ending"]: row["printed"] for row in rows(__package__, "units.tsv")}
"""The ending of a name → the unit as it is printed; a count has none."""

_OF_DIFFERENCES = {"LUFS": "LU", "dBTP": "dB", "dBFS": "dB"}

_CAPITALS = {"rtf", "ttfa", "pesq", "stoi", "mos", "dnsmos", "wer", "snr", "stft", "cpu", "g2p", "f0"}
_STATISTICS = {"mean", "median", "min", "max", "most", "least", "lowest", "highest", "worst", "low", "high"}


def unit_of(name: str) -> str:
    """The unit that a figure's name ends in, as it is printed; empty where it has none.

    A statistic may follow the unit: `pause_ms_p95` is in ms.
    """
    for word in reversed(name.split("_")):
        if word in _UNITS:
            return _UNITS[word]
        if word not in _STATISTICS and not (word[:1] == "p" and word[1:].isdigit()):
            break
    return ""


def unit_of_difference(name: str) -> str:
    """The unit of a margin or a change of a figure: the difference of two values in LUFS is in LU."""
    return _OF_DIFFERENCES.get(unit_of(name), unit_of(name))


def words_of(name: str) -> str:
    """A figure's name without its unit, in words: `true_peak_dbtp` is "true peak"."""
    words = name.split("_")
    for place in range(len(words) - 1, 0, -1):
        if words[place] in _UNITS:
            if words[place] != "count":
                del words[place]
            break
        if words[place] not in _STATISTICS and not (words[place][:1] == "p" and words[place][1:].isdigit()):
            break
    if words[-1] == "count":
        del words[-1]
    return " ".join(word.upper() if word in _CAPITALS else word for word in words)


def label_of(name: str) -> str:
    """A figure's name and unit: "true peak, dBTP". If both are the same word, the word once."""
    words, unit = words_of(name), unit_of(name)
    if unit.lower() == words:
        return unit
    return words if not unit or words == "percent" else f"{words}, {unit}"


def number(value: float) -> str:
    """A figure with four digits and separated thousands; powers of ten only where plain digits would be hard
    to read."""
    if not math.isfinite(value):
        return "not measured" if math.isnan(value) else "infinite"
    if value and abs(value) < 1e-4:
        text = f"{value:.3g}"
    elif float(value).is_integer():
        text = f"{value:,.0f}"
    else:
        digits = max(0, 3 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
        text = text.rstrip("0").rstrip(".") if digits else text
    return text.replace("-", "−")


def with_unit(value: float, unit: str) -> str:
    """`number`, and its unit if it has one."""
    return f"{number(value)} {unit}".rstrip()
