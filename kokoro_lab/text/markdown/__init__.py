"""Markdown as models write it: read by its structure, each block by itself, no mark spoken, no word lost.

`parser` is markdown-it with places in the source, `reading` says what is said of a block, `formulas` reads
LaTeX, and `document` puts the blocks together, or takes them from a text that is still written.
"""

from kokoro_lab.text.markdown.document import (
    Certain,
    blocks,
    certain,
    document_of,
    parse,
    written,
    written_blocks,
)
from kokoro_lab.text.markdown.reading import Block
