"""The vocoder in windows of a few fixed sizes, for providers that must know every shape in advance.

<home>/derived/<first 12 of the source's SHA-256>-static-<first 12 of the key>/
    spectrum.onnx                       excitation → magnitudes and angles, of any length, for the CPU
    vocoder_32.onnx, _60, _140.onnx     trunk frames in; see `StaticWindow`
    layers.npz manifest.json            as of other variants (see `artefacts`)

The graphs are made when they are first needed, in about ten seconds and 210 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import onnx

from kokoro_lab._version import __version__
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.graphs import artefacts, mlprogram, rewriting, signatures, static_passes
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.recipe_digest import recipe_digest
from kokoro_lab.graphs.recipes import Passes, Recipes
from kokoro_lab.graphs.signatures import SCALE, SHIFT
from kokoro_lab.graphs.static_passes import COLUMNS, LONGEST_AXIS, SAMPLES, SPECTRUM, TRUNK
from kokoro_lab.model.prosody import Prosody, Values
from kokoro_lab.model.vocoder import INNER_CONTEXT_FRAMES, Around, WindowVocoder
from kokoro_lab.model.windows import CONTEXT_FRAMES, Span
from kokoro_lab.sessions.guarded_session import GuardedSession
from kokoro_lab.sessions.provider_registry import CPU
from kokoro_lab.sessions.providers import cpu_session, stage_session
from kokoro_lab.weights.joining import sha256_of
from kokoro_lab.weights.store import model_sha256

CACHE_KEY = "COREML_CACHE_KEY"
"""Metadata under which ONNX Runtime's Core ML provider looks for the name of its compiled copy. Without it
the copy is named by the model's path, and is used for any later model at that path."""
CACHE_KEY_CHARACTERS = 40
"""The provider takes 64 at most, letters and digits."""


@dataclass(frozen=True, slots=True)
class StaticWindow:
    """One fixed size of a window.

    Parameters
    ----------
    frames : int
        Trunk frames of 12.5 ms whose samples it gives.
    context : int
        Further trunk frames on either side that it is given.
    inner_context : int
        How many of these are kept for the convolutions after the second upsampling.
    """

    frames: int
    context: int = CONTEXT_FRAMES
    inner_context: int = INNER_CONTEXT_FRAMES

    def __post_init__(self) -> None:
        most = LONGEST_AXIS // COLUMNS - 2 * self.context
        if not 1 <= self.frames <= most:
            raise ParameterError(
                "Core ML takes no window of that size.",
                field="frames",
                value=self.frames,
                allowed=f"1 to {most} with {self.context} frames of context",
            )

    @property
    def outer(self) -> int:
        """The number of trunk frames that the graph takes, context included."""
        return self.frames + 2 * self.context

    @property
    def inner(self) -> tuple[int, int]:
        """Which of the outer frames are decoded after the second upsampling: the first, and the one after the
        last."""
        dropped = self.context - self.inner_context
        return dropped, self.outer - dropped

    @property
    def name(self) -> str:
        """The name of the graph of this size."""
        return f"vocoder_{self.outer}"

    @property
    def cache_key(self) -> str:
        """A digest that changes only with the weights, the passes and the size."""
        about = [model_sha256("fp32"), recipe_digest(f"{self.outer} {self.inner}", native_operators=False)]
        return sha256("\n".join(about).encode()).hexdigest()[:CACHE_KEY_CHARACTERS]


WINDOWS = (StaticWindow(12), StaticWindow(40), StaticWindow(120))
"""The sizes: a small window that sounds early, a middle one, and a large one, of which little is context."""


@dataclass(frozen=True, slots=True)
class StaticWindows:
    """The available windows, smallest first. Each decoded window is one size larger than the last."""

    sizes: tuple[StaticWindow, ...] = WINDOWS

    def spans(self, start: int, stop: int) -> Iterator[Span]:
        """The windows that cover `start` to `stop`."""
        for window in chain(self.sizes, repeat(self.sizes[-1])):
            if start >= stop:
                return
            end = min(stop, start + window.frames)
            yield start, end
            start = end

    def holding(self, frames: int) -> StaticWindow:
        """The smallest window that gives at least `frames` frames."""
        return next(window for window in self.sizes if window.frames >= frames)


def recipes(windows: tuple[StaticWindow, ...] = WINDOWS) -> Recipes:
    """The recipe by which each graph is made from the vocoder stage."""
    made: dict[str, tuple[str, Passes]] = {
        "spectrum": ("vocoder", (static_passes.spectrum_alone,)),
    }
    for window in windows:
        named = partial(with_metadata, key=CACHE_KEY, value=window.cache_key)
        made[window.name] = ("vocoder", (*static_passes.recipe(window.outer, window.inner), named))
    return made


def with_metadata(model: rewriting.Model, key: str, value: str) -> rewriting.Model:
    """The model with an entry in its metadata."""
    found = rewriting.Model()
    found.CopyFrom(model)
    entry = next((e for e in found.metadata_props if e.key == key), None) or found.metadata_props.add()
    entry.key, entry.value = key, value
    return found


def static_folder(config: EngineConfig, say: Callable[[str], None] | None = None) -> Path:
    """The folder with the static graphs, made if it is not there. Errors as `artefacts.stages_folder`."""
    # Whichever engine makes them first, the layers beside them are kept in single precision
    single = replace(config, variant="fp32")
    return artefacts.kept_graphs(single, "static", static_recipe(), recipes, "static vocoders", say)


def static_recipe() -> str:
    """The digest of the recipes of the static graphs."""
    sizes = " ".join(f"{window.outer} {window.inner}" for window in WINDOWS)
    return recipe_digest(f"static {sizes}", native_operators=False, others=[Path(__file__)])


class StaticVocoder(WindowVocoder):
    """From trunk and excitation to samples in windows of fixed sizes, with statistics that are given.

    It cannot decode a whole segment: for exact statistics, see `vocoder.Vocoder`.

    Parameters
    ----------
    folder : Path
        Where `static_folder` or an export keeps the graphs.
    config : EngineConfig
        Its provider runs the windows; the spectrum is always the CPU's.

    Attributes
    ----------
    cut : StaticWindows
        The sizes of windows of which the folder has a graph.
    """

    def __init__(self, folder: Path, config: EngineConfig, windows: StaticWindows | None = None) -> None:
        self.layers = AdainLayers.load(folder / "layers.npz")
        self.cut = windows or StaticWindows()
        self.fixed_spans = self.cut.spans
        self._spectrum = cpu_session(str(signatures.graph_path(folder, "spectrum")), config)
        paths = {window: str(signatures.graph_path(folder, window.name)) for window in self.cut.sizes}
        self._sessions = {window: stage_session("vocoder", path, config) for window, path in paths.items()}
        self._on_cpu = {window: partial(cpu_session, path, config) for window, path in paths.items()}

    @property
    def sessions(self) -> tuple[GuardedSession, ...]:
        """The session of each size; those that lost their provider come last, so that the report shows it."""
        return tuple(sorted(self._sessions.values(), key=lambda s: s.active_provider == CPU.full_name))

    def through(self, around: Around) -> StaticVocoder:
        """The same windows, each with the session that `around` makes from its present one."""
        found = copy(self)
        found._sessions = {
            window: around(session, self._on_cpu[window]) for window, session in self._sessions.items()
        }
        return found

    def decoding(
        self, prosody: Prosody, scale: Values, shift: Values, audible: Span
    ) -> Callable[[Span], Samples]:
        spectrum = cache(partial(self.spectrum, prosody))

        def decoded(span: Span) -> Samples:
            start, stop = span
            window = self.cut.holding(stop - start)
            feed = feed_of(window, prosody.trunk, spectrum(), scale, shift, start)
            samples = static_passes.joined(self.run(window, feed))
            skipped = window.inner_context * signatures.TRUNK_FRAME_SAMPLES
            return samples[skipped : skipped + (stop - start) * signatures.TRUNK_FRAME_SAMPLES]

        return decoded

    def spectrum(self, prosody: Prosody) -> Values:
        """Magnitudes and angles of the whole excitation, float32 (1, 22, 60 · frames + 1)."""
        (found,) = self._spectrum.run([SPECTRUM], {signatures.EXCITATION: prosody.excitation})
        return np.asarray(found, np.float32)

    def run(self, window: StaticWindow, feed: Mapping[str, Values]) -> Values:
        """The output of the graph of one size: float32 (1, 5, 60 · frames), with the frames of the inner
        context."""
        (found,) = self._sessions[window].run([SAMPLES], dict(feed))
        return np.asarray(found, np.float32)


def write_program(folder: Path, window: StaticWindow, path: Path, precision: str = "float16") -> None:
    """Write the graph of one size as an `.mlpackage`; its metadata say what it was made of (see
    `mlprogram.write`)."""
    graph = signatures.graph_path(folder, window.name)
    about = {
        "source_sha256": model_sha256("fp32"),
        "graph_sha256": sha256_of(graph),
        "recipe": window.cache_key,
        "precision": precision,
        "window_frames": str(window.frames),
        "context_frames": str(window.context),
        "inner_context_frames": str(window.inner_context),
        "sample_rate_hz": str(SAMPLE_RATE_HZ),
        "kokoro_lab": __version__,
    }
    mlprogram.write(onnx.load(graph), path, precision, about)


def feed_of(
    window: StaticWindow, trunk: Values, spectrum: Values, scale: Values, shift: Values, start: int
) -> dict[str, Values]:
    """The inputs with which a static vocoder decodes from trunk frame `start` on.

    Where the window reaches over the segment's ends there are zeros. So the samples at the segment's ends,
    where the model is silent, differ by about 1e-6 from those of a segment that is decoded at once.
    """
    first = start - window.context
    return {
        TRUNK: _part(trunk, first, first + window.outer),
        SPECTRUM: _part(spectrum, first * COLUMNS, (first + window.outer) * COLUMNS + 1),
        SCALE: scale.reshape(1, -1, 1),
        SHIFT: shift.reshape(1, -1, 1),
    }


def _part(values: Values, start: int, stop: int) -> Values:
    """`values[:, :, start:stop]`, zeros where there are none."""
    there = values[:, :, max(0, start) : max(0, stop)]
    before = max(0, -start)
    return np.pad(there, ((0, 0), (0, 0), (before, stop - start - before - there.shape[2])))
