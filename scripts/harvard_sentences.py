"""Write the 720 Harvard sentences, one a line, as Debian's package `r-cran-stringr` holds them.

After `apt-get download r-cran-stringr`, run
`python scripts/harvard_sentences.py r-cran-stringr_*.deb harvard.txt`.
The notebook `36_public_yardsticks` reads that file; `fixtures/texts/README.md` says why it is not kept here.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

DATA = "./usr/lib/R/site-library/stringr/data/Rdata.rdb"
CHARACTER_VECTOR, TYPE = 16, 0xFF
"""R's number of a vector of strings, and the bits in which the number of a type is."""


def stored(package: str) -> bytes:
    """The data of the package: R's objects, one after another."""
    archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        found = files.extractfile(DATA)
        assert found is not None
        return found.read()


def vectors(data: bytes) -> Iterator[list[str]]:
    """Each vector of strings. An object is its length in four bytes, then R's serialisation, compressed."""
    while data:
        unpacker = zlib.decompressobj()
        written = BytesIO(unpacker.decompress(data[4:]))
        data = unpacker.unused_data
        assert written.read(2) == b"X\n"  # binary, the high byte first
        version, _, _ = struct.unpack(">3i", written.read(12))
        if version == 3:  # names its encoding
            written.read(_number(written))
        if _number(written) & TYPE == CHARACTER_VECTOR:
            yield [_string(written) for _ in range(_number(written))]


def _number(written: BytesIO) -> int:
    return int(struct.unpack(">i", written.read(4))[0])


def _string(written: BytesIO) -> str:
    _number(written)  # its type and encoding
    return written.read(_number(written)).decode()


if __name__ == "__main__":
    package, written = sys.argv[1:]
    found = next(each for each in vectors(stored(package)) if len(each) == 720)
    Path(written).write_text("\n".join(found) + "\n", "utf-8")
