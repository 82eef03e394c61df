"""Records what enters and leaves blocks of the vocoder while the model speaks as in a stream.

Three blocks run in parallel on the same input, and the mean of their outputs goes on (`ParallelRecorder`). A
block can also be recorded by itself (`BlockRecorder`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import onnx

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import rewriting
from kokoro_lab.graphs.making import published_stages
from kokoro_lab.graphs.native_passes import bias_of
from kokoro_lab.graphs.recipes import GIVEN
from kokoro_lab.graphs.rewriting import Graph, Model, Pass
from kokoro_lab.lab.research.residual_steps import Step, Values, steps_of
from kokoro_lab.lab.research.vocoder_block import CROP, MARGIN, Block, Crop
from kokoro_lab.lab.tuning.comparison import Spoken
from kokoro_lab.lab.tuning.reporter import whole_vocoder
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import make_session


class ParallelRecorder:
    """Records the input that parallel blocks share, and the mean of their outputs.

    Parameters
    ----------
    blocks : sequence of str
        Such as "resblocks.3", "resblocks.4" and "resblocks.5".
    rewrite : callable, optional
        A pass that changes layers of the vocoder, such as to integers. If it is given, inputs are those that
        the blocks have in the changed vocoder; outputs are always those of the vocoder that ships.

    Attributes
    ----------
    steps : list of list of Step
        The steps of each block, the first one first.
    teachers : list of Block
        The blocks as they ship, in float.
    """

    def __init__(self, blocks: Sequence[str], config: EngineConfig, rewrite: Pass | None = None) -> None:
        config = replace(config, variant="fp32")
        self.steps = _steps(blocks, config)
        self._decoder = StagedDecoder(config)
        vocoder = rewriting.apply(published_stages(config)["vocoder"], GIVEN)
        g = Graph(vocoder)
        by_name = {node.name: node for node in g.graph.node}
        convolutions = [
            [by_name[name] for step in steps for name in (step.first, step.second)] for steps in self.steps
        ]
        self.teachers = [_teacher(g, own, steps) for own, steps in zip(convolutions, self.steps, strict=True)]
        norms = [[_norm_above(g, conv) for conv in own] for own in convolutions]
        self._input = norms[0][0].input[0]
        self._outputs = [g.readers[own[-1].output[0]][0].output[0] for own in convolutions]
        self._factors = [norm.input[side] for own in norms for side in (1, 2) for norm in own]
        self._float = _Part(vocoder, [self._input, *self._outputs, *self._factors], config)
        self._changed = rewrite and _Part(rewrite(vocoder), [self._input, *self._outputs], config)

    def crops(self, segments: Iterable[Spoken], each: int, seed: int = 0) -> list[Crop]:
        """`each` crops of every segment that is long enough for one, at random places."""
        return [replace(crop, y=in_float.y) for in_float, crop in self.compared(segments, each, seed)]

    def compared(self, segments: Iterable[Spoken], each: int, seed: int = 0) -> list[tuple[Crop, Crop]]:
        """The same crops twice: inputs and outputs of the vocoder that ships, and of the changed one."""
        random, found, length = np.random.default_rng(seed), [], CROP + 2 * MARGIN
        for token_ids, style in segments:
            both = self._whole(token_ids, style)
            columns = both[0].x.shape[1]
            for _ in range(each if columns >= length else 0):
                start = int(random.integers(columns - length + 1))
                part = slice(start, start + length)
                one, other = (replace(c, x=c.x[:, part].copy(), y=c.y[:, part].copy()) for c in both)
                found.append((one, other))
        return found

    def _whole(self, token_ids: Sequence[int], style: Values) -> tuple[Crop, Crop]:
        decoder = self._decoder
        prosody = decoder.prosody.predict(token_ids, style, 1.0)
        mean, variance = decoder.windowed.predictor.predict(prosody)
        scale, shift = decoder.windowed.vocoder.layers.scale_and_shift(mean, variance, style)
        feed = whole_vocoder(prosody, scale, shift, known=True)
        count = len(self.teachers)
        x, *found = self._float.run(feed)
        y = np.mean([output[0] for output in found[:count]], axis=0)
        factors = np.stack(found[count:]).reshape(count, 2, -1, len(y))
        whole = Crop(x[0], y, factors[:, 0].copy(), factors[:, 1].copy())
        if self._changed is None:
            return whole, whole
        x, *outputs = self._changed.run(feed)
        return whole, replace(whole, x=x[0], y=np.mean([output[0] for output in outputs], axis=0))


class BlockRecorder(ParallelRecorder):
    """Records what enters and leaves one block, such as "resblocks.5" or "noise_res.1".

    Attributes
    ----------
    teacher : Block
        The block as it ships.
    """

    def __init__(self, block: str, config: EngineConfig) -> None:
        super().__init__([block], config)
        (self.teacher,) = self.teachers

    def crops(self, segments: Iterable[Spoken], each: int, seed: int = 0) -> list[Crop]:
        """`each` crops of every segment that is long enough for one, at random places."""
        found = super().crops(segments, each, seed)
        return [replace(crop, scale=crop.scale[0], shift=crop.shift[0]) for crop in found]


class _Part:
    """The part of a vocoder that makes some of its tensors."""

    def __init__(self, vocoder: Model, outputs: Sequence[str], config: EngineConfig) -> None:
        g = Graph(vocoder)
        del g.graph.output[:]
        g.graph.output.extend(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs
        )
        model = g.keep(g.graph.node)
        self._outputs = list(outputs)
        self._inputs = {given.name for given in model.graph.input}
        library = native_operators(config).library
        self._session = make_session(model.SerializeToString(), config, library=library)

    def run(self, feed: dict[str, Values]) -> list[Values]:
        given = {name: value for name, value in feed.items() if name in self._inputs}
        found: list[Values] = self._session.run(self._outputs, given)
        return found


def _steps(blocks: Sequence[str], config: EngineConfig) -> list[list[Step]]:
    found = steps_of(",".join(f"*/generator/{block}/*" for block in blocks), config)
    return [[found[name] for name in sorted(found) if f"/{block}/" in name] for block in blocks]


def _teacher(g: Graph, convolutions: Sequence[onnx.NodeProto], steps: Sequence[Step]) -> Block:
    weights = [weight for step in steps for weight in (step.first_weight, step.second_weight)]
    return Block(
        [np.ascontiguousarray(weight.transpose(2, 0, 1)) for weight in weights],
        [bias_of(g, conv).copy() for conv in convolutions],
        tuple(dilation for step in steps for dilation in (step.dilation, 1)),
    )


def _norm_above(g: Graph, conv: onnx.NodeProto) -> onnx.NodeProto:
    node = conv
    while node.op_type != "BatchNormalization":
        node = g.maker[node.input[0]]
    return node
