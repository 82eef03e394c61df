"""SSML: a strict subset, read safely. Anything else is an error that says where it is and what is allowed.

`markup` reads XML, `grammar` says which elements are allowed where and what they mean, `say_as` reads
numbers, dates and times, and `document` makes the spoken document.
"""

from kokoro_lab.text.ssml.document import Break, Mark, Passage, SsmlDocument, parse
from kokoro_lab.text.ssml.grammar import Outside
from kokoro_lab.text.ssml.inline import parse_inline
from kokoro_lab.text.ssml.markup import documents_of
