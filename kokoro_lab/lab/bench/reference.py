"""The reference inference by which times are divided: the published fp32 graph, run by ONNX Runtime as it is.

It is available wherever our engine is, since every variant in stages is made from these weights; it needs no
extra, and contains none of our passes, operators, windows or G2P. So our changes do not affect its time,
while the machine's load affects both.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.g2p.vocab import PAD_ID, encode
from kokoro_lab.graphs.signatures import signature
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.timing import InProcess, spoken
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.weights.fetching import fetch
from kokoro_lab.weights.store import missing, model_path
from kokoro_lab.weights.voices import load_voice

WEIGHTS, VOICE = "fp32", "af_heart"
PHONEMES = "ðə kˈɛTᵊl ɪz ˈɔn."
"""Fixed phonemes, so that their number does not depend on a G2P."""


@dataclass(frozen=True, slots=True)
class Inference:
    """One run of the reference: the seconds that it took, and the seconds of speech that it made."""

    seconds: float
    audio_s: float

    @property
    def rtf(self) -> float:
        return self.seconds / self.audio_s


class Reference:
    """The published graph, loaded, on as many threads as `config` says.

    Parameters
    ----------
    config : EngineConfig
        Configuration of the engine to compare with; only threads, spinning and the cache folder are used.

    Raises
    ------
    WeightsError
        The published weights are not available.
    """

    def __init__(self, config: EngineConfig) -> None:
        if missing((WEIGHTS,), config.home):
            fetch((WEIGHTS,), source=config.source, home=config.home, say=lambda _: None)
        plain = EngineConfig(variant=WEIGHTS, provider="cpu", native="off")
        plain = replace(plain, threads=config.threads, spinning=config.spinning, home=config.home)
        path, token_ids = model_path(WEIGHTS, config.home), encode(PHONEMES)
        self._session = make_session(str(path), plain)
        names = signature(self._session, path.name)
        self._audio = names.audio
        self._feed = {
            names.tokens: np.array([[PAD_ID, *token_ids, PAD_ID]], np.int64),
            names.style: load_voice(VOICE, config.home).style(len(token_ids)),
            names.speed: np.array([1.0], np.float32),
        }

    def infer(self) -> Inference:
        """Run the inference once."""
        started_s = time.perf_counter()
        (audio,) = self._session.run([self._audio], self._feed)
        return Inference(time.perf_counter() - started_s, audio.size / SAMPLE_RATE_HZ)


def timed_beside(
    speaker: InProcess, reference: Reference, texts: Mapping[str, str], rounds: int
) -> pd.DataFrame:
    """Speak every text in each round, with a reference inference right before the text or, in every other
    round, right after it.

    Parameters
    ----------
    texts : mapping of str to str
        Name of each text → the text.

    Returns
    -------
    pandas.DataFrame
        A row for each round and text: text (its name), trial, ttfa_s, rtf, reference_s, reference_rtf.

    Raises
    ------
    ParameterError
        There is no text, or no round.
    """
    if not texts or rounds < 1:
        raise ParameterError(
            "Nothing would be measured.", field="trials", value=rounds * len(texts), allowed="1 or more"
        )
    rows = []
    for trial in tqdm(range(rounds), desc="trials"):
        for name, text in texts.items():
            before = reference.infer() if trial % 2 else None
            ours = spoken(speaker, trial, text)
            plain = before or reference.infer()
            row = {"text": name, "trial": trial, "ttfa_s": ours.ttfa_s, "rtf": ours.rtf}
            rows.append(row | {"reference_s": plain.seconds, "reference_rtf": plain.rtf})
    return pd.DataFrame(rows)
