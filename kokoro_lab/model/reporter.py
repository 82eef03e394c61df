"""The vocoder's true statistics of an utterance: to fit a predictor on, and to test windows with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx

from kokoro_lab.config import EngineConfig
from kokoro_lab.model import graphs, passes
from kokoro_lab.model.artefacts import stages_folder
from kokoro_lab.model.native import native_operators
from kokoro_lab.model.prosody import Prosody, ProsodyModel
from kokoro_lab.model.providers import make_session
from kokoro_lab.model.statistics import AdainLayers
from kokoro_lab.model.weights import model_path

Values = npt.NDArray[np.float32]


class StatisticsReporter:
    """The model up to its vocoder, and the vocoder's true statistics of what it decodes."""

    def __init__(self, config: EngineConfig) -> None:
        folder = stages_folder(config.home)
        self._prosody = ProsodyModel(folder, config, native_operators(config))
        self._names = AdainLayers.load(folder / "layers.npz").names
        vocoder = graphs.cut(onnx.load(model_path("fp32", config.home)))["vocoder"]
        reporting = passes.apply(vocoder, (passes.fold_constants, passes.report_statistics))
        self._vocoder = make_session(reporting.SerializeToString(), config)

    def __call__(
        self, token_ids: Sequence[int], style: Values, speed: float
    ) -> tuple[Prosody, Values, Values]:
        """Prosody of a segment, and mean and variance of each distinct channel, float32 (8448,) each."""
        prosody = self._prosody.predict(token_ids, style, speed)
        found = self._vocoder.run(
            list(self._names),
            {
                graphs.TRUNK: prosody.trunk,
                graphs.EXCITATION: prosody.excitation,
                graphs.DECODER_STYLE: style[:, :128],
            },
        )
        flat = np.concatenate([statistic.reshape(-1) for statistic in found])
        half = len(flat) // 2
        return prosody, flat[:half], flat[half:]
