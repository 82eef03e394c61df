"""SSML: a strict subset, read safely. What is not in it is an error that says where, and what is.

`markup` reads XML, `grammar` says what may stand where and what it means, `say_as` how
numbers, dates and times are read, and `document` puts together what is to be spoken.
"""

from kokoro_lab.text.ssml.document import Break, Mark, Passage, SsmlDocument, parse
from kokoro_lab.text.ssml.grammar import Outside
from kokoro_lab.text.ssml.inline import parse_inline
from kokoro_lab.text.ssml.markup import documents_of
