"""Speech as bytes, in the formats of files and answers: one encoder for each answer or file.

`formats` names the formats, `pcm` and `coded` write samples in them, and `encoder` chooses between the two.
"""

from kokoro_lab.containers.encoder import Encoder, dithered, save, write_encoded, write_file
from kokoro_lab.containers.formats import FORMATS, Format, content_type, decoded_hz, format_of, named_format
