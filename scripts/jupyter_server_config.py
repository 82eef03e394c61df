"""JupyterLab's configuration for this checkout: `make env` links this file into `.venv/etc/jupyter`."""

import subprocess
from pathlib import Path
from typing import Any


def saved(model: dict[str, Any], os_path: str, **_: Any) -> None:
    """A notebook of which nothing but outputs has changed stays unchanged to git.

    Its filter takes outputs away, but git asks the filter only about a file that has its old size; so the
    new size is told to it.
    """
    if model["type"] != "notebook":
        return
    path = Path(os_path)
    git = ["git", "-C", str(path.parent)]
    try:
        alike = subprocess.run([*git, "diff", "--quiet", "--", path.name], capture_output=True, check=False)
        if alike.returncode == 0:
            subprocess.run([*git, "update-index", "--", path.name], capture_output=True, check=False)
    except OSError:
        pass  # no git, so nobody who would see a change


c = get_config()  # type: ignore[name-defined]  # noqa: F821  # Jupyter runs this file
c.FileContentsManager.post_save_hook = saved
