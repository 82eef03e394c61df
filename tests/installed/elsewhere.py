"""The wheel installed into other places than a checkout's own environment, and run by other users."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from tests.browser import require

ROOT = Path(__file__).parents[2]
STRANGER = "12345"
"""The number of a user who is in no list of users."""
# A root in which there is nothing but what is named, all of it read-only, with an empty /tmp
_CONFINED = f"""\
set -e
root=$1 work=$2; shift 2
mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir "$root/tmp" "$root/dev" "$root/mine"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
while [ "$1" != -- ]; do
  if [ -L "$1" ]; then cp -P "$1" "$root$1"; else mkdir -p "$root$1"; mount --rbind "$1" "$root$1"; fi
  [ -L "$1" ] || mount -o remount,bind,ro "$root$1"
  shift
done
shift
mount --rbind /dev "$root/dev"
mount --bind "$work" "$root/mine"
mount -o remount,ro "$root"
exec chroot "$root" setpriv --reuid {STRANGER} --regid {STRANGER} --clear-groups --no-new-privs env -i "$@"
"""


def release() -> ModuleType:
    """`scripts/check_release.py`, which builds the wheel and installs it, and is no part of the package."""
    if "check_release" not in sys.modules:
        spec = importlib.util.spec_from_file_location("check_release", ROOT / "scripts/check_release.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["check_release"] = module  # its dataclass looks itself up
        spec.loader.exec_module(module)
    return sys.modules["check_release"]


def installed_into(folder: Path, built: Path) -> Path:
    """The program of the wheel, built in `built` and installed alone into a new environment at `folder`.

    The packages that it needs are borrowed from the environment of this run.
    """
    wheel, _ = release().build(built)
    scripts: Path = release().installed(wheel, folder)
    return scripts / "kokoro-lab"


def run_by_a_stranger(
    command: list[str], folder: Path, seen: Iterable[Path], variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command as a user without rights or a name, who may write to `/mine` and `/tmp` alone.

    Parameters
    ----------
    folder : Path
        What `/mine` is there.
    seen : iterable of Path
        What there is beside the system's programs and libraries and this Python.
    variables : dict
        All of the environment.
    """
    require(
        {
            "what makes namespaces and changes users, as root": os.geteuid() == 0
            and shutil.which("unshare")
            and shutil.which("setpriv")
        }
    )
    root = folder.parent / f"{folder.name}-root"
    root.mkdir(exist_ok=True)
    folder.chmod(0o777)
    system = [
        path for path in map(Path, ("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc")) if path.exists()
    ]
    packages = [Path(path) for path in sys.path if Path(path).name == "site-packages"]
    paths = [*system, Path(sys.base_prefix), *packages, *seen]
    return subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", _CONFINED),
            *("sh", str(root), str(folder), *map(str, paths), "--"),
            *(f"{name}={value}" for name, value in variables.items()),
            *command,
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
