"""The clips that a gate judged, worst first, with pictures and sound.

judged      a clip as a gate judged it
pictures    its waveform and its spectrogram
view        the table, pictures and sounds as HTML
"""

from kokoro_lab.lab.clips.judged import WORST_COUNT, JudgedClip, KeptClip, Sound, kept, worst_first
from kokoro_lab.lab.clips.view import ClipsView, Limits
