"""The clips that a gate judged, worst first, with pictures and sound.

judged → pictures → view
"""

from kokoro_lab.lab.clips.judged import WORST_COUNT, JudgedClip, KeptClip, Sound, kept, worst_first
from kokoro_lab.lab.clips.view import ClipsView, Limits
