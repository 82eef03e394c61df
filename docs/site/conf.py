"""The site of the README and of these pages: `make site`. The files stay readable as they are."""

import sys
from pathlib import Path
from shutil import copyfile

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
from rendered import copy_runs, gallery

project = "kokoro-lab"
extensions = ["myst_parser"]
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md"]
root_doc = "README"
nitpicky = True
myst_heading_anchors = 4
highlight_language = "sh"
suppress_warnings = ["misc.highlighting_failure"]  # JSON with "..." in it
html_theme = "furo"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["wide.css"]
html_title = "kokoro-lab"
html_copy_source = False

CONTENTS = """
```{toctree}
:hidden:
:caption: Use
docs/start
docs/speak
docs/text
docs/live
docs/play
docs/configuration
docs/troubleshooting
```
```{toctree}
:hidden:
:caption: Serve
docs/serve
docs/service
docs/clients
docs/events
docs/wyoming
docs/from-openai
docs/from-kokoro-fastapi
```
```{toctree}
:hidden:
:caption: Measure
docs/notebooks
docs/rendered
docs/listening
docs/measure
docs/figures
docs/variants
docs/providers
docs/apple
docs/tune
```
```{toctree}
:hidden:
:caption: Change
docs/architecture
CONTRIBUTING
docs/change
docs/glossary
docs/decisions
docs/release
CHANGELOG
```
"""
SOUND = "**[Hear it](docs/sounds/hello.mp3)**"
PLAYER = "<audio controls preload='none' src='sounds/hello.mp3'></audio>\n\n"


def with_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """The site alone has contents, a player, and what was run; a reader of the file has its links."""
    if name == root_doc:
        source[0] = source[0].replace(SOUND, PLAYER + SOUND) + CONTENTS
    if name == "docs/rendered":
        source[0] += "\n" + gallery(Path(app.srcdir))


def as_index(app: Sphinx, failure: Exception | None) -> None:
    """The first page is found by the folder's name, too; runs and the sound lie beside the pages."""
    if failure is None and app.builder.name == "html":
        copyfile(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))
        copy_runs(Path(app.srcdir), Path(app.outdir))
        Path(app.outdir, "sounds").mkdir(exist_ok=True)
        copyfile(Path(app.srcdir, "docs/sounds/hello.mp3"), Path(app.outdir, "sounds/hello.mp3"))


def with_new_runs(*_: object) -> list[str]:
    """The page of runs is read anew each time, since its file does not change when they do."""
    return ["docs/rendered"]


def setup(app: Sphinx) -> None:
    app.connect("env-get-outdated", with_new_runs)
    app.connect("source-read", with_contents)
    app.connect("build-finished", as_index)
