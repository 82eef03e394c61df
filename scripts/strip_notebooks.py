"""Notebooks as git holds them: without outputs, counts and what an editor adds; tags are kept.

    strip_notebooks.py FILE ...      strips files in place; exits with 1 if one had to be changed, so that a
                                     pre-commit hook stops and shows it
    strip_notebooks.py --clean       from standard input to standard output: the filter of `.gitattributes`
    strip_notebooks.py --text FILE   the cells as text: what `git diff` and `git log -p` compare

It imports no package, so that git, which runs it for every notebook that was saved, does not wait.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path


def stripped(text: str) -> str:
    """A notebook without what changes when it is run or opened, as JupyterLab would write it."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k == "tags"}
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def strip(path: Path) -> bool:
    """Strip one notebook; whether it was changed."""
    before = path.read_text("utf-8")
    after = stripped(before)
    if after != before:
        path.write_text(after, "utf-8")
    return after != before


def as_text(text: str) -> str:
    """A notebook's cells as text, each after a line with its kind."""
    return "\n".join(
        " ".join(["# %%", f"[{cell['cell_type']}]", *cell["metadata"].get("tags", [])])
        + f"\n{''.join(cell['source'])}\n"
        for cell in json.loads(text)["cells"]
    )


def main(arguments: list[str]) -> int:
    if arguments == ["--clean"]:
        text = sys.stdin.buffer.read().decode("utf-8")
        with suppress(ValueError, LookupError):  # no notebook, for one in the midst of a merge: as it is
            text = stripped(text)
        sys.stdout.buffer.write(text.encode("utf-8"))
        return 0
    if arguments[:1] == ["--text"]:
        sys.stdout.buffer.write(as_text(Path(arguments[1]).read_text("utf-8")).encode("utf-8"))
        return 0
    changed = [name for name in arguments if strip(Path(name))]
    sys.stdout.write("".join(f"stripped {name}\n" for name in changed))
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
