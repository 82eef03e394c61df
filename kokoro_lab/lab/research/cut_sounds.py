"""Speaks segments while some residual steps are cut (see `residual_steps`), to judge how the cuts sound.

*Trunk* and *vocoder* are the stages of the model that compute features and samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnxruntime as ort

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import rewriting, signatures, trunk_passes
from kokoro_lab.graphs.making import published_stages
from kokoro_lab.graphs.passes import fold_constants
from kokoro_lab.graphs.recipes import GIVEN
from kokoro_lab.lab.research.residual_steps import Cuts, narrowed
from kokoro_lab.lab.tuning.comparison import Spoken
from kokoro_lab.lab.tuning.reporter import whole_vocoder
from kokoro_lab.metrics.perceptual import log_spectral_distance_db
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.sessions.providers import make_session


class Sounds:
    """Speaks segments while some steps are cut, with float weights, ONNX Runtime's own operators, and the
    predicted statistics of a stream. No graph is written to the disk, so that many cuts can be tried."""

    def __init__(self, segments: Sequence[Spoken], config: EngineConfig) -> None:
        self._config = replace(config, variant="fp32")
        decoder, stages = StagedDecoder(self._config), published_stages(config)
        self._stages = {
            "trunk": rewriting.apply(stages["trunk"], (fold_constants, trunk_passes.told_statistics)),
            "vocoder": rewriting.apply(stages["vocoder"], GIVEN[:3]),
        }
        self._spoken = []
        for token_ids, style in segments:
            contours = decoder.prosody.contours(token_ids, style, 1.0)
            prosody = decoder.prosody.behind(contours, style)
            mean, variance = decoder.windowed.predictor.predict(prosody)
            given = decoder.windowed.vocoder.layers.scale_and_shift(mean, variance, style)
            self._spoken.append((contours, prosody, given))
        self.plain = self.of({})

    def of(self, cuts: Cuts) -> list[Samples]:
        """The samples of each segment, spoken with `cuts`."""
        in_trunk = any("/generator/" not in name for name in cuts)
        trunk = self._session("trunk", cuts) if in_trunk else None
        vocoder = self._session("vocoder", cuts)
        found = []
        for contours, prosody, (scale, shift) in self._spoken:
            if trunk is not None:
                feed = {
                    signatures.ALIGNED: contours.aligned,
                    signatures.F0: contours.f0_hz,
                    signatures.ENERGY: contours.energy,
                    signatures.DECODER_STYLE: prosody.style[:, :128],
                }
                beside = signatures.whole_trunk(contours.aligned.shape[2])
                (values,) = trunk.run([signatures.TRUNK], feed | beside)
                prosody = replace(prosody, trunk=values)
            fed = whole_vocoder(prosody, scale, shift, known=True)
            (samples,) = vocoder.run([signatures.WAVEFORM], fed)
            found.append(samples.reshape(-1))
        return found

    def _session(self, stage: str, cuts: Cuts) -> ort.InferenceSession:
        model = narrowed(self._stages[stage], cuts)
        if stage == "vocoder":
            model = rewriting.apply(model, GIVEN[3:])
        return make_session(model.SerializeToString(), self._config)

    def distance(self, cuts: Cuts) -> float:
        """Mean square of the log-spectral distance to the samples without cuts, dB²."""
        pairs = zip(self.plain, self.of(cuts), strict=True)
        return float(np.mean([log_spectral_distance_db(*pair, SAMPLE_RATE_HZ) ** 2 for pair in pairs]))
