"""Names of figures as people read them: in code a name ends in its unit, in a report a unit stands beside it."""

from __future__ import annotations

_UNITS = {
    "count": "",
    "percent": "%",
    "s": "s",
    "ms": "ms",
    "us": "µs",
    "minutes": "min",
    "db": "dB",
    "dbfs": "dBFS",
    "dbtp": "dBTP",
    "lu": "LU",
    "lufs": "LUFS",
    "hz": "Hz",
    "cents": "cents",
    "points": "points",
    "mb": "MB",
    "mib": "MiB",
    "kb": "kB",
    "bytes": "bytes",
    "ratio": "×",
    "share": "of 1",
}
"""The ending of a name → the unit as it is printed; a count has none."""

_SPOKEN = {
    "rtf": "RTF",
    "ttfa": "TTFA",
    "pesq": "PESQ",
    "stoi": "STOI",
    "mos": "MOS",
    "dnsmos": "DNSMOS",
    "wer": "WER",
    "snr": "SNR",
    "stft": "STFT",
    "cpu": "CPU",
    "g2p": "G2P",
    "f0": "F0",
    "int8": "int8",
    "fp32": "fp32",
    "fp16": "fp16",
}
_STATISTICS = {"mean", "median", "min", "max", "most", "least", "lowest", "highest", "worst", "low", "high"}


def unit_of(name: str) -> str:
    """The unit that a figure's name ends in, as it is printed; empty where it has none.

    A statistic may stand behind the unit: `pause_ms_p95` is in ms.
    """
    for word in reversed(name.split("_")):
        if word in _UNITS:
            return _UNITS[word]
        if word not in _STATISTICS and not (word[:1] == "p" and word[1:].isdigit()):
            break
    return ""


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
    return " ".join(_SPOKEN.get(word, word) for word in words)
