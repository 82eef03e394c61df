"""Signal processing between vocoder and client, block by block: trim, gain, limiter, resampling, dither."""

from kokoro_lab.dsp.block import Processor, in_runs, require_finite
from kokoro_lab.dsp.dither import Dither, Dithering, ShapedDither, ditherer
from kokoro_lab.dsp.envelope import Envelope
from kokoro_lab.dsp.limiter import SETTLED_S, Limiter
from kokoro_lab.dsp.loudness import Gain, normalising_gain_db, voice_gain_db
from kokoro_lab.dsp.resample import RATES_HZ, Resampler
from kokoro_lab.dsp.trim import EdgeTrimmer, silence
