"""What the site shows of each notebook's newest run: verdict, first plot, and the report as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, rmtree

REPORT = "report.html"


def newest_runs(root: Path) -> dict[str, Path | None]:
    """The folder of each notebook's newest run that has a report; None where it was not run here."""
    names = sorted(path.stem for path in root.glob("notebooks/[0-9]*.ipynb") if path.stem != "00_index")
    runs = {name: sorted(root.glob(f"results/{name}/*/{REPORT}")) for name in names}
    return {name: found[-1].parent if found else None for name, found in runs.items()}


def gallery(root: Path) -> str:
    """The sections of docs/rendered.md, one a notebook."""
    return "\n\n".join("\n".join(_section(root, name, run)) for name, run in newest_runs(root).items())


def copy_runs(root: Path, site: Path) -> None:
    """Lay the runs beside the pages: reports, to which `gallery` links, and the files that these name."""
    for name, run in newest_runs(root).items():
        if run is not None:
            rmtree(site / "runs" / name, ignore_errors=True)
            copytree(run, site / "runs" / name)


def _section(root: Path, name: str, run: Path | None) -> Iterator[str]:
    """A heading that asks what the notebook asks, then what came of it."""
    first = json.loads((root / f"notebooks/{name}.ipynb").read_text("utf-8"))["cells"][0]["source"]
    yield f"## {''.join(first).splitlines()[0].lstrip('# ')}"
    if run is None:
        yield f"`{name}` was not run here; `kokoro-lab run {name} --fast` does."
        return
    report = (run / REPORT).read_text("utf-8")
    verdict = re.search(r'<div class="banner">(.*?)</div>', report, re.DOTALL)
    plot = re.search(r'<figure class="plot".*?</figure>', report, re.DOTALL)
    record = run / "result.json"  # which a run that crashed has not
    git = json.loads(record.read_text("utf-8"))["git"] if record.exists() else {}
    yield f"<div class='run'><p><code>{name}</code></p>"
    yield from (
        re.sub(r"\n\s*\n", "\n", found) for found in (verdict and verdict[1], plot and plot[0]) if found
    )
    day = f"{run.name[:4]}-{run.name[4:6]}-{run.name[6:8]}"
    commit = f", commit {git['commit'][:8]}" if git.get("commit") else ""
    yield f"<p><a href='../runs/{name}/{REPORT}'>The whole report</a> of {day}{commit}.</p></div>"
