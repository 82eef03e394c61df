"""Whose voice it is: by the published network, read without the library that wrote it."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
import soundfile
from scipy.special import expit

from kokoro_lab.errors import ParameterError, WeightsError
from kokoro_lab.metrics import speaker
from kokoro_lab.metrics.speaker import VoiceEncoder, read_tensors, speaker_similarity
from kokoro_lab.speech.engine import Engine

RATE_HZ = 24_000


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    samples, rate_hz = soundfile.read(Path(__file__).with_name("speech.flac"), dtype="float32")
    assert rate_hz == RATE_HZ
    return samples


@pytest.mark.model
def test_a_voice_is_known_by_another_text_and_told_from_others(
    engine: Engine, voice_encoder: VoiceEncoder
) -> None:
    text, another = "The birch canoe slid on the smooth planks.", "Rice is often served in round bowls."
    spoken = {
        (voice, words): engine.synthesize(words, voice=voice).samples
        for voice, words in [
            ("af_heart", text),
            ("af_heart", another),
            ("af_bella", text),
            ("am_michael", text),
        ]
    }
    first = spoken["af_heart", text]
    same, sister, man = (
        speaker_similarity(first, spoken[key], RATE_HZ, voice_encoder)
        for key in [("af_heart", another), ("af_bella", text), ("am_michael", text)]
    )
    # Over 24 sentences and these voices, the network's own code gave 0.87, 0.81 and 0.53 in the mean
    assert same == pytest.approx(0.87, abs=0.07)
    assert sister == pytest.approx(0.77, abs=0.07)
    assert man == pytest.approx(0.5, abs=0.1)


@pytest.mark.model
def test_an_embedding_is_of_length_one_and_deaf_to_a_gain(
    speech: np.ndarray, voice_encoder: VoiceEncoder
) -> None:
    found = voice_encoder.embed(speech, RATE_HZ)
    assert found.shape == (256,)
    assert found.min() >= 0
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)
    assert speaker_similarity(speech, speech, RATE_HZ, voice_encoder) == pytest.approx(1, abs=1e-5)
    quiet, quieter = speech * np.float32(0.01), speech * np.float32(0.001)  # both are raised to −30 dBFS
    assert speaker_similarity(quiet, quieter, RATE_HZ, voice_encoder) > 0.9999


@pytest.mark.model
@pytest.mark.parametrize(
    "samples",
    [
        np.ones((2, RATE_HZ), np.float32),
        np.ones(RATE_HZ // 3, np.float32),
        np.zeros(RATE_HZ, np.float32),
        np.full(RATE_HZ, np.nan, np.float32),
    ],
)
def test_what_has_no_voice_is_refused(samples: np.ndarray, voice_encoder: VoiceEncoder) -> None:
    with pytest.raises(ParameterError):
        voice_encoder.embed(samples, RATE_HZ)


def test_the_graph_is_the_network_as_pytorch_defines_it() -> None:
    """Gates in PyTorch's order: input, forget, cell, output; both biases are added."""
    random = np.random.default_rng(0)
    units = speaker.UNITS
    shapes = {"linear.weight": (units, units), "linear.bias": (units,)}
    for k in range(speaker.LAYERS):
        width = units if k else speaker.MEL_BANDS
        shapes |= {f"lstm.weight_ih_l{k}": (4 * units, width), f"lstm.weight_hh_l{k}": (4 * units, units)}
        shapes |= {f"lstm.bias_ih_l{k}": (4 * units,), f"lstm.bias_hh_l{k}": (4 * units,)}
    tensors = {n: random.uniform(-0.1, 0.1, shape).astype(np.float32) for n, shape in shapes.items()}
    mel = random.standard_normal((speaker.PART_FRAMES, 2, speaker.MEL_BANDS)).astype(np.float32)
    session = ort.InferenceSession(speaker.network(tensors), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"mel": mel})

    sequence = mel
    for k in range(speaker.LAYERS):
        w, r, b, c = (
            tensors[f"lstm.{part}_l{k}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        state, cell = np.zeros((2, 2, units), np.float32)
        states = []
        for frame in sequence:
            let_in, forget, fresh, let_out = np.split(frame @ w.T + b + state @ r.T + c, 4, axis=1)
            cell = expit(forget) * cell + expit(let_in) * np.tanh(fresh)
            state = expit(let_out) * np.tanh(cell)
            states.append(state)
        sequence = np.stack(states)
    expected = np.maximum(sequence[-1] @ tensors["linear.weight"].T + tensors["linear.bias"], 0)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (found > 0).any()


@pytest.mark.parametrize(
    ("seconds", "parts"), [(0.5, 1), (1.6, 1), (1.9, 1), (2.0, 2), (2.3, 2), (3.0, 3), (4.0, 4)]
)
def test_a_recording_is_heard_in_overlapping_parts(seconds: float, parts: int) -> None:
    noise = np.random.default_rng(0).standard_normal(round(seconds * speaker.ENCODER_RATE_HZ))
    found = speaker._parts(noise.astype(np.float32))
    assert found.shape == (parts, speaker.PART_FRAMES, speaker.MEL_BANDS)


# ------------------------------------------------------------------------------------- the checkpoint


class Told:
    """Something that is pickled as a call of a name."""

    def __init__(self, module: str, name: str, *arguments: Any) -> None:
        self.call = (module, name, arguments)


class Old(pickle._Pickler):  # type: ignore[name-defined]
    """Pickles `Told` as what it names, and storages by their persistent id, as old PyTorch did."""

    def persistent_id(self, value: Any) -> Any:
        return value if isinstance(value, tuple) and value[:1] == ("storage",) else None

    def save(self, value: Any, save_persistent_id: bool = True) -> None:
        if not isinstance(value, Told):
            super().save(value, save_persistent_id)
            return
        module, name, arguments = value.call
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        if arguments:
            super().save(arguments)
            self.write(pickle.REDUCE)


def checkpoint(path: Path, content: Any, storages: dict[str, np.ndarray], magic: int = speaker.MAGIC) -> Path:
    file = io.BytesIO()
    for value in (magic, speaker.PROTOCOL, {}, content, list(storages)):
        Old(file, 2).dump(value)
    for values in storages.values():
        file.write(len(values).to_bytes(8, "little") + values.astype("<f4").tobytes())
    path.write_bytes(file.getvalue())
    return path


def tensor(start: int, shape: tuple[int, ...], stride: tuple[int, ...], kind: str = "FloatStorage") -> Told:
    storage = ("storage", Told("torch", kind), "7", "cuda:0", 6, None)
    return Told("torch._utils", "_rebuild_tensor_v2", storage, start, shape, stride, False, OrderedDict())


VALUES = {"7": np.arange(6.0)}


def test_tensors_are_read_from_where_they_lie(tmp_path: Path) -> None:
    content = {"step": 3, "state": {"a": tensor(1, (2, 2), (2, 1)), "b": tensor(5, (1,), (1,)), "n": 4}}
    found = read_tensors(checkpoint(tmp_path / "x.pt", content, VALUES), "state")
    assert set(found) == {"a", "b"}
    np.testing.assert_array_equal(found["a"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(found["b"], [5])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"state": {"a": Told("os", "system", "true")}}, "os.system is not allowed"),
        ({"state": {"a": Told("builtins", "eval", "1")}}, "builtins.eval is not allowed"),
        ({"state": {"a": tensor(0, (2, 2), (1, 2))}}, "strides"),
        ({"state": {"a": tensor(0, (2,), (1,), "HalfStorage")}}, "HalfStorage is not allowed"),
        ({"state": {"a": tensor(4, (3,), (1,))}}, "cannot reshape"),
        ({"other": {}}, "state"),
        ([1], "no checkpoint"),
    ],
)
def test_a_checkpoint_that_holds_anything_else_is_refused(content: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=said):
        read_tensors(checkpoint(tmp_path / "x.pt", content, VALUES), "state")


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    content = {"state": {"a": tensor(0, (6,), (1,))}}
    good = checkpoint(tmp_path / "good.pt", content, VALUES).read_bytes()
    broken = {"short": good[:-1], "empty": b"", "text": b"<html>log in to the hotel network</html>"}
    for name, written in broken.items():
        (tmp_path / name).write_bytes(written)
        with pytest.raises(WeightsError, match="no checkpoint"):
            read_tensors(tmp_path / name, "state")
    with pytest.raises(WeightsError, match="another format"):
        read_tensors(checkpoint(tmp_path / "new.pt", content, VALUES, magic=1), "state")
    with pytest.raises(WeightsError, match="cannot be read"):
        read_tensors(tmp_path / "nowhere.pt", "state")
    with pytest.raises(WeightsError, match=r"has no tensor .lstm\."):
        VoiceEncoder(checkpoint(tmp_path / "x.pt", {"model_state": content["state"]}, VALUES))
