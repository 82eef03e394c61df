"""The hashes by which spaCy's tagger numbers strings and finds their rows in its tables.

Both are Austin Appleby's MurmurHash, on 64-bit integers: version 2 of a string, version 3 of its number.
"""

from __future__ import annotations

_MASK = 2**64 - 1
_SECOND = 0xC6A4A7935BD1E995


def string_hash(text: str) -> int:
    """The number of `text`, which is not empty: MurmurHash2 (64 bits) of its UTF-8, with the seed 1."""
    data = text.encode()
    value = 1 ^ (len(data) * _SECOND & _MASK)
    whole = len(data) - len(data) % 8
    for at in range(0, whole, 8):
        block = int.from_bytes(data[at : at + 8], "little") * _SECOND & _MASK
        value = (value ^ ((block ^ block >> 47) * _SECOND & _MASK)) * _SECOND & _MASK
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _SECOND & _MASK
    value = (value ^ value >> 47) * _SECOND & _MASK
    return value ^ value >> 47


def row_hashes(number: int, seed: int) -> tuple[int, int, int, int]:
    """Four numbers of 32 bits: MurmurHash3 (128 bits) of `number`, as thinc, the library that spaCy's
    networks are built with, computes it."""
    first = number * 0x87C37B91114253D5 & _MASK
    first = (first << 31 & _MASK | first >> 33) * 0x4CF5AD432745937F & _MASK
    second = seed ^ 8
    first = (first ^ second) + second & _MASK
    second = second + first & _MASK
    first, second = _mixed(first), _mixed(second)
    first = first + second & _MASK
    second = second + first & _MASK
    return first & 0xFFFFFFFF, first >> 32, second & 0xFFFFFFFF, second >> 32


def _mixed(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
