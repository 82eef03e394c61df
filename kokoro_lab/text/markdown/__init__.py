"""Markdown as language models write it, read block by block: no mark is spoken, and no word is lost.

The source is the text as it was written. `parser` is markdown-it with offsets into the source, `reading` puts
a block into words, `formulas` reads LaTeX, and `document` joins the blocks, or takes them from a text that is
still being written.
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
