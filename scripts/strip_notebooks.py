"""Strip outputs and execution counts from the notebooks that are named, in place; tags are kept.

Exits with 1 if one had to be changed, so that a pre-commit hook stops and shows it.
"""

import sys
from pathlib import Path

import nbformat


def strip(path: Path) -> bool:
    """Strip one notebook; whether it was changed."""
    before = path.read_text("utf-8")
    notebook = nbformat.reads(before, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata = {k: v for k, v in cell.metadata.items() if k == "tags"}
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    after = nbformat.writes(notebook, indent=1, ensure_ascii=False).rstrip("\n") + "\n"
    if after != before:
        path.write_text(after, "utf-8")
    return after != before


if __name__ == "__main__":
    changed = [name for name in sys.argv[1:] if strip(Path(name))]
    sys.stdout.write("".join(f"stripped {name}\n" for name in changed))
    sys.exit(bool(changed))
