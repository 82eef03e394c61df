"""The steps of a Containerfile, carried out without a container engine, by root on a Debian.

What is known: FROM, RUN, COPY, ENV, USER, WORKDIR, CMD, HEALTHCHECK; VOLUME, EXPOSE and STOPSIGNAL change
nothing here. A step that is not known is an error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

DEBIAN = "bookworm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NEEDED = "python3,python3-venv,python3-pip,libpython3-dev,ca-certificates"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_OF_CLIENTS = re.compile(r"(PIP|UV|SSL|REQUESTS)_.*|https?_proxy|no_proxy", re.IGNORECASE)
_MOUNTED = 'mount --rbind /dev "$0/dev"; mount -t proc proc "$0/proc"; exec chroot "$0" "$@"'
# Read-only but for a volume and /tmp; no network but a loopback of its own
_CONFINED = """\
set -e
ip link set lo up
mount --bind "$0" "$0"
mount --rbind /dev "$0/dev"
mount -t proc proc "$0/proc"
mount -t tmpfs -o mode=1777 tmpfs "$0/tmp"
mount --bind "$1" "$0$2"
mount -o remount,bind,ro "$0"
shift 2
exec chroot "$0" "$@"
"""


@dataclass
class Image:
    """A root, and what its last steps say of the program that is run in it."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = "root"
    folder: str = "/"
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def as_user(self, command: list[str]) -> list[str]:
        """What `chroot` is told, behind the root, to run a command as the image says."""
        line = f"cd {shlex.quote(self.folder)} && exec {shlex.join(command)}"
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        identity = ["setpriv", "--reuid", self.user, "--regid", self.user, "--init-groups", "--no-new-privs"]
        dropped = ["--bounding-set=-all", "--inh-caps=-all"]
        return [*identity, *dropped, "env", "-i", *variables, "HOME=" + self.home(), "/bin/sh", "-c", line]

    def home(self) -> str:
        """The home folder of the user, as an engine finds it."""
        users = (self.root / "etc/passwd").read_text().splitlines()
        return next(line.split(":")[5] for line in users if line.split(":")[0] == self.user)


def debian(folder: Path) -> Path:
    """A small Debian with its own Python, in the place of an image that has a Python; made once."""
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={NEEDED}", DEBIAN, str(folder)],
            check=True,
            capture_output=True,
        )
        (folder / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        for file in folder.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
            file.unlink()  # the image has none
        (folder / "made").touch()
    shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, folder / "etc/ssl/certs/ca-certificates.crt")
    return folder


def steps_of(text: str) -> Iterator[tuple[str, str]]:
    """Instruction and argument, comments and line ends taken out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            instruction, _, argument = line.partition(" ")
            yield instruction, argument.strip()


def built(containerfile: Path, base: Path, work: Path) -> Image:
    """The last stage of a Containerfile, each stage built upon a copy of `base`."""
    stages: dict[str, Image] = {}
    image: Image | None = None
    for instruction, argument in steps_of(containerfile.read_text("utf-8")):
        if instruction == "FROM":
            image = Image(work / f"stage{len(stages)}")
            subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(image.root)], check=True)
            stages[argument.partition(" AS ")[2] or str(len(stages))] = image
            continue
        assert image is not None
        _carry_out(image, instruction, argument, stages, containerfile.parent)
    assert image is not None
    return image


def _carry_out(
    image: Image, instruction: str, argument: str, stages: dict[str, Image], context: Path
) -> None:
    match instruction:
        case "RUN":
            _run(image, argument)
        case "COPY":
            words = argument.split()
            source = context
            if words[0].startswith("--from="):
                source = stages[words.pop(0).removeprefix("--from=")].root
            _copy(image, [source / word.lstrip("/") for word in words[:-1]], words[-1])
        case "ENV":
            for pair in shlex.split(argument):
                name, _, value = pair.partition("=")
                image.environment[name] = value.replace("$PATH", image.environment["PATH"])
        case "USER":
            image.user = argument
        case "WORKDIR":
            image.folder = argument
            (image.root / argument.lstrip("/")).mkdir(parents=True, exist_ok=True)
        case "CMD":
            image.command = json.loads(argument)
        case "HEALTHCHECK":
            image.health = json.loads(argument.partition("CMD ")[2])
        case "VOLUME" | "EXPOSE" | "STOPSIGNAL":
            pass
        case _:
            raise AssertionError(f"{instruction} is not known")


def _run(image: Image, line: str) -> None:
    assert image.user == "root"
    clients = {name: value for name, value in os.environ.items() if _OF_CLIENTS.fullmatch(name)}
    environment = {**clients, **image.environment, "DEBIAN_FRONTEND": "noninteractive"}
    line = f"cd {shlex.quote(image.folder)} && {line}"
    done = subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNTED),
            *(str(image.root), "/bin/sh", "-c", line),
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def _copy(image: Image, sources: list[Path], target: str) -> None:
    to = image.root / str(Path(image.folder, target)).lstrip("/")
    for source in sources:
        if source.is_dir():  # its content, as an engine does
            shutil.copytree(source, to, symlinks=True, dirs_exist_ok=True)
        else:
            into = to / source.name if target.endswith(("/", ".")) else to
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, into)


@contextmanager
def running(image: Image, volume: Path, at: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The image's command, in a read-only root with `volume` at the path `at` of it."""
    own = ["--mount", "--net", "--propagation", "private"]
    command = ["sh", "-c", _CONFINED, str(image.root), str(volume), at, *image.as_user(image.command)]
    with log.open("wb") as sink:
        process = subprocess.Popen(["unshare", *own, *command], stdout=sink, stderr=sink)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def beside(process: subprocess.Popen[bytes], command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in the namespaces and the root of one that runs."""
    return subprocess.run(
        ["nsenter", "--target", str(process.pid), "--mount", "--net", "--root", "--", *command],
        capture_output=True,
        text=True,
        check=False,
    )
