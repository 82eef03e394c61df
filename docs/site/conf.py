"""The site of the README and of these pages: `make site`. The files stay readable as they are."""

from pathlib import Path
from shutil import copyfile

from sphinx.application import Sphinx

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
docs/text
docs/serve
docs/clients
docs/from-openai
docs/play
docs/service
docs/configuration
docs/troubleshooting
```
```{toctree}
:hidden:
:caption: Measure
docs/notebooks
docs/measure
docs/variants
docs/providers
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


def with_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """The contents are the site's alone: a reader of the file has its links."""
    if name == root_doc:
        source[0] += CONTENTS


def as_index(app: Sphinx, failure: Exception | None) -> None:
    """The first page is found by the folder's name, too."""
    if failure is None and app.builder.name == "html":
        copyfile(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> None:
    app.connect("source-read", with_contents)
    app.connect("build-finished", as_index)
