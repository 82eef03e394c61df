"""What macOS looks at before it loads a library: read from the file, as no Mac is needed for that.

Sources: `mach-o/loader.h`, `mach-o/nlist.h`, and `cs_blobs.h` of Apple's XNU.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC_64, ARM64, DYNAMIC_LIBRARY, MACOS = 0xFEEDFACF, 0x0100000C, 6, 1
_SYMBOLS, _LOAD, _NAME, _SIGNATURE, _BUILD = 0x2, 0xC, 0xD, 0x1D, 0x32
_SEGMENT = 0x19
_CODE_DIRECTORY = 0xFADE0C02
AD_HOC = 0x2
SHA256 = 2


@dataclass(frozen=True)
class MachO:
    """A library for macOS.

    Parameters
    ----------
    architecture, kind, platform : int
    least_version : tuple of int
        Of macOS: major, minor.
    name : str
    needs : list of str
        The libraries that are loaded with it.
    exports : set of str
        What it defines for others.
    sections : set of str
    signature_flags : int
        `AD_HOC`: signed by nobody, which is enough for what is loaded into a program.
    signed : bool
        Whether each page has the digest that the signature gives.
    """

    architecture: int
    kind: int
    platform: int
    least_version: tuple[int, int]
    name: str
    needs: list[str]
    exports: set[str]
    sections: set[str]
    signature_flags: int
    signed: bool


def read(path: Path) -> MachO:
    data = path.read_bytes()
    magic, architecture, _, kind, count = struct.unpack_from("<5I", data)
    assert magic == MAGIC_64
    at, needs, sections = 32, [], set()
    platform, least, name, exports, flags, signed = 0, 0, "", set[str](), 0, False
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        values = (
            struct.unpack_from("<4I", data, at + 8) if size >= 24 else struct.unpack_from("<2I", data, at + 8)
        )
        command &= 0x7FFFFFFF
        if command == _BUILD:
            platform, least = values[:2]
        elif command in (_LOAD, _NAME):
            text = _text(data, at + values[0])
            name = text if command == _NAME else name
            needs += [text] if command == _LOAD else []
        elif command == _SYMBOLS:
            exports = _defined(data, *values)
        elif command == _SEGMENT:
            (parts,) = struct.unpack_from("<I", data, at + 64)
            sections |= {_text(data, at + 72 + 80 * part, 16) for part in range(parts)}
        elif command == _SIGNATURE:
            flags, signed = _signature(data, values[0])
        at += size
    return MachO(
        *(architecture, kind, platform, (least >> 16, least >> 8 & 255), name, needs, exports, sections),
        *(flags, signed),
    )


def _text(data: bytes, at: int, most: int = 1024) -> str:
    return data[at : at + most].split(b"\0")[0].decode()


def _defined(data: bytes, symbols: int, count: int, texts: int, _: int) -> set[str]:
    found = set()
    for number in range(count):
        text, kind = struct.unpack_from("<IB", data, symbols + 16 * number)
        external, private, defined = kind & 0x01, kind & 0x10, kind & 0x0E
        if external and defined and not private:
            found.add(_text(data, texts + text))
    return found


def _signature(data: bytes, at: int) -> tuple[int, bool]:
    """Flags of the code directory, and whether the digests of all pages are right."""
    (blobs,) = struct.unpack_from(">I", data, at + 8)
    for number in range(blobs):
        _, offset = struct.unpack_from(">2I", data, at + 12 + 8 * number)
        place = at + offset
        magic, _, _, flags, hashes, _, _, pages, end = struct.unpack_from(">9I", data, place)
        if magic != _CODE_DIRECTORY:
            continue
        size, kind, _, page_bits = struct.unpack_from("4B", data, place + 36)
        assert kind == SHA256
        right = all(
            hashlib.sha256(data[page << page_bits : min(end, (page + 1) << page_bits)]).digest()
            == data[place + hashes + size * page : place + hashes + size * (page + 1)]
            for page in range(pages)
        )
        return flags, right and end == at
    return 0, False
