"""The engine: loaded once, it speaks any number of texts at a time.

There is one path from text to samples. `Engine.stream` runs it while somebody listens; `Engine.synthesize`
joins such a stream into a clip.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kokoro_lab.config import STAGED, set_by_user, settings, weights_of
from kokoro_lab.datatypes import Clip, Place, SynthesisReport, Utterance
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.speakers import Speakers
from kokoro_lab.model.choosing import ByLength, PlacedDecoder, chosen_by_cost
from kokoro_lab.model.decoder import StagedDecoder, WholeGraph
from kokoro_lab.native.brakes import brakes_of
from kokoro_lab.native.operators import native_operators
from kokoro_lab.scheduling.native_work import native_work
from kokoro_lab.scheduling.priority import prepare
from kokoro_lab.sessions.arenas import shrink_arenas
from kokoro_lab.sessions.guarded_session import Placement
from kokoro_lab.sessions.tuned import with_tuned
from kokoro_lab.speech.live import LiveSpeech
from kokoro_lab.speech.parts import Parts
from kokoro_lab.speech.stream import SpeechStream
from kokoro_lab.speech.utterance import CheckedUtterance, checked_utterance
from kokoro_lab.text.growing import GrowingLines, GrowingText, all_of_it
from kokoro_lab.text.language import resolve_language
from kokoro_lab.text.normalise.pictographs import without_emoji
from kokoro_lab.typed import require_arguments, require_range, require_type
from kokoro_lab.weights.fetching import fetch
from kokoro_lab.weights.progress import Step, untold
from kokoro_lab.weights.store import missing, model_path, model_sha256
from kokoro_lab.weights.voices import Voice, VoiceCache, load_voice

log = logging.getLogger(__name__)

WARM_TEXT = (
    "Ready to speak. The engine that reads this sentence to nobody is taking the memory which it will need "
    "for the longest sentences of an article so that nothing has to grow while a listener waits for the next "
    "word of a story which somebody has only just begun to read aloud to a friend who came in late."
)
"""The text of the warm-up. Its second sentence has nearly as many token ids as a segment may have."""


def load_engine(
    variant: str | None = None,
    provider: str | None = None,
    *,
    config: EngineConfig | None = None,
    tuned: bool = True,
    voice: str | None = None,
    say: Callable[[str], None] = log.info,
    begins: Step = untold,
) -> Engine:
    """An engine with the real weights, which are fetched first if they are not in the cache.

    Settings that `kokoro-lab tune` found for this machine replace defaults, but not values that a user has
    set; see `sessions.tuned`.

    Parameters
    ----------
    variant, provider : str, optional
        Override what the environment says; see `EngineConfig`.
    config : EngineConfig, optional
        The whole configuration, instead of the environment's; then nothing else is looked up.
    tuned : bool
        Whether to use what `kokoro-lab tune` found. False is for samples that must equal those of other
        machines up to rounding.
    voice : str, optional
        The voice that will speak first; by default, that of the settings. Its language's G2P is loaded while
        the graphs are.
    say : callable
        Called with a line about what is being fetched.
    begins : callable
        Called with `weights` (fetched and checked) and `graphs` (made and loaded) as each step begins.

    Raises
    ------
    ParameterError, SettingsError, ProviderError, WeightsError
        An argument has the wrong type, or names something that does not exist or is not available.
    """
    given = locals()
    require_arguments(load_engine, given, *given)
    if config is None:
        config = configuration(variant, provider, tuned=tuned)
    else:
        config = replace(config, variant=variant or config.variant, provider=provider or config.provider)
    weights = weights_of(config.variant)
    begins("weights")
    needed = () if config.stages else (weights,)  # with exported graphs, only the voices are fetched
    if missing(needed, config.home):
        fetch(needed, source=config.source, home=config.home, say=say)
    fallbacks, reason = prepare(config), ""
    front_end = FrontEnd(speakers=Speakers(home=config.home, source=config.source))
    first_voice = voice or settings().voice
    threading.Thread(
        target=_load_reading, args=(front_end, first_voice, config.home), name="reading", daemon=True
    ).start()
    begins("graphs")
    decoder: PlacedDecoder
    if config.provider_choice == "measured":
        decoder, found, reason = chosen_by_cost(
            config,
            model_sha256(weights),
            lambda: load_voice(settings().voice, config.home),
            partial(_decoder, say=say),
        )
        fallbacks += found
    elif (setting := config.by_length_setting()) and (sides := config.sides()):
        decoder = ByLength(setting, *(_decoder(side, say) for side in sides))
    else:
        decoder = _decoder(config, say)
    for fallback in decoder.placement.fallbacks:
        log.warning("%s", fallback.reason)
    parts = Parts(
        decoder,
        config,
        VoiceCache(lambda spec: load_voice(spec, config.home)),
        model_sha256(weights),
        lambda: decoder.placement,
        provider_reason=reason,
        fallbacks=fallbacks,
        front_end=front_end,
        brakes=brakes_of(native_operators(config).library) if config.variant in STAGED else None,
    )
    return Engine(parts)


def _load_reading(front_end: FrontEnd, voice: str, home: Path | None) -> None:
    """Load the G2P of a voice's language. An error is not raised here, but when the voice first speaks."""
    try:
        with native_work():
            front_end.speakers.of(load_voice(voice, home).language)
    except Exception:
        log.debug("What reads %s could not be loaded beforehand", voice, exc_info=True)


def _decoder(config: EngineConfig, say: Callable[[str], None]) -> PlacedDecoder:
    if config.variant in STAGED:
        return StagedDecoder(config, say=say)
    return WholeGraph(model_path(weights_of(config.variant), config.home), config)


class Engine:
    """Speaks. Thread-safe: one engine serves any number of streams at a time.

    Made by `load_engine`; tests and the lab make others of its `parts`.

    Parameters
    ----------
    parts : Parts

    Attributes
    ----------
    decoder : Decoder
        The acoustic model.
    config : EngineConfig
        The engine's configuration.
    front_end : FrontEnd
        The front end that reads texts.
    first_audio : FirstAudioCache
        The first audio of the last utterances.
    model_sha256 : str
        SHA-256 of the weights.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.decoder = parts.decoder
        self.config = parts.config
        self.front_end = parts.front_end
        self.first_audio = parts.first_audio
        self.model_sha256 = parts.model_sha256

    @property
    def placement(self) -> Placement:
        """Where each stage runs at this moment, and which providers were given up."""
        return self.parts.placement()

    @property
    def active_provider(self) -> str:
        """ONNX Runtime's name of the provider that makes the samples at this moment."""
        return self.parts.active_provider

    @property
    def session_record(self) -> dict[str, Any]:
        """What changes speed, memory or samples: options of the configuration, our own operators, and the
        mode of floating-point arithmetic."""
        return self.parts.session_record

    @property
    def conversion(self) -> Mapping[str, Any]:
        """How the graphs in use were made; empty where published weights run as they are."""
        made: Mapping[str, Any] = getattr(self.decoder, "conversion", {})
        return made

    def voice(self, spec: str) -> Voice:
        """The voice that `spec` names; the last ones used are kept."""
        return self.parts.voices(spec)

    def stream(
        self,
        text: str | Utterance | Iterable[str],
        *,
        chunk_s: float | None = None,
        streamed: bool = True,
        cached: bool = True,
        place: Place | None = None,
        heard_samples: int = 0,
        longest_s: float = math.inf,
        stop: threading.Event | None = None,
        client: str = "",
        **options: Any,
    ) -> SpeechStream:
        """Speak a text; each chunk is computed when the caller asks for it.

        Parameters
        ----------
        text : str, Utterance or iterable of str
            What to say. An iterable is read in a thread of its own, as its strings come; how it cuts the text
            changes no sample (see `session`).
        chunk_s : float, optional
            Length of a chunk, 0.030 to 0.120 s; None takes the configuration's.
        streamed : bool
            Whether somebody listens while it is computed; False for a stream that `synthesize` joins into a
            file.
        cached : bool
            Whether first audio and phonemes are taken from the caches and kept there.
        place : Place, optional
            Begin there: one of the `places` of an earlier stream of the same utterance.
        heard_samples : int
            How many samples of that stream the listener has. Windows that end before this sample are not
            decoded, so samples up to there may be wrong; the listener does not need them.
        longest_s : float
            The longest speech allowed, in seconds; beyond it, `next` raises `TextError`.
        stop : threading.Event, optional
            Set it to end the synthesis within one window; then `next` raises `Interrupted`.
        client : str
            The client for whom this is computed: clients whose streams are equally urgent compute in turn.
        **options
            Fields of `Utterance`: voice, speed, language, input_format, code, emoji, loudness, statistics,
            seed, lexicon, detect_languages.

        Returns
        -------
        SpeechStream
            Iterates over `AudioChunk`s of float32 mono at 24 kHz. Nothing is computed before the first
            `next`, but errors of the request are raised here.

        Raises
        ------
        TextError, VoiceError, LanguageError, LexiconError, ParameterError
            The request cannot be spoken.
        """
        checked = ("streamed", "cached", "place", "heard_samples", "stop")
        require_arguments(Engine.stream, locals(), *checked)
        require_range("heard_samples", heard_samples, 0)
        how: dict[str, Any] = {"chunk_s": chunk_s, "cached": cached, "longest_s": longest_s}
        how |= {"stop": stop, "client": client}
        if not isinstance(text, str | Utterance):
            if isinstance(text, bytes | bytearray) or not hasattr(text, "__iter__"):  # type: ignore[unreachable]
                require_type("text", text, str | Utterance, ParameterError)
            if not streamed or place is not None:
                raise ParameterError(
                    "A text that is still being written is streamed from its beginning.",
                    field="text",
                    value=type(text).__name__,
                    mend="Give the whole text as one string.",
                )
            live = self.session(**how, **options)
            live.write_from(text)
            return live.stream
        asked = checked_utterance(self.parts, text, options, streamed=streamed)
        return self._stream_of(asked, place=place, heard_samples=heard_samples, **how)

    def session(
        self,
        utterance: Utterance | None = None,
        *,
        chunk_s: float | None = None,
        cached: bool = True,
        place: Place | None = None,
        heard_samples: int = 0,
        longest_s: float = math.inf,
        max_wait_s: float = math.inf,
        most_ahead: int = 20_000,
        stop: threading.Event | None = None,
        client: str = "",
        **options: Any,
    ) -> LiveSpeech:
        """Speak a text while it is written: `append` text to the returned object, and iterate over it for
        chunks.

        Parameters
        ----------
        utterance : Utterance, optional
            The options of the speech; its text is not read.
        chunk_s, cached, longest_s, stop, client
            As for `stream`; the first audio comes from no cache.
        place, heard_samples
            As for `stream`. The writer then writes the text again, from its beginning.
        max_wait_s : float
            Seconds without new text after which the text so far is spoken as if it ended. Without this limit,
            the speech depends on the text alone.
        most_ahead : int
            Characters that may wait to be read.
        **options
            Fields of `Utterance` but `text`, as for `stream`; `input_format` is `text` or `markdown`. In
            Markdown, each block is spoken as soon as later text cannot change it: a paragraph after an empty
            line, an item of a list when the next item begins.

        Raises
        ------
        VoiceError, LanguageError, LexiconError, ParameterError
            The text cannot be spoken with these options.
        """
        require_type("max_wait_s", max_wait_s, float, ParameterError)
        given = replace(utterance, text="") if utterance else ""
        asked = checked_utterance(self.parts, given, options, streamed=True)
        if asked.utterance.input_format not in ("text", "markdown"):
            raise ParameterError(
                "A text that is still being written has to be plain text, or Markdown.",
                field="input_format",
                value=asked.utterance.input_format,
                allowed="text, markdown",
            )
        stop = stop or threading.Event()
        text = (GrowingLines if asked.utterance.input_format == "markdown" else GrowingText)(
            max_wait_s=max_wait_s,
            most_ahead=most_ahead,
            stop=stop,
            leaving_out=without_emoji if asked.utterance.emoji == "skip" else all_of_it,
        )
        stream = self._stream_of(
            asked,
            chunk_s=chunk_s,
            cached=cached,
            place=place,
            heard_samples=heard_samples,
            longest_s=longest_s,
            stop=stop,
            client=client,
            growing=text,
        )
        return LiveSpeech(text, stream)

    def synthesize(
        self, text: str | Utterance, *, stop: threading.Event | None = None, **options: Any
    ) -> Clip:
        """Speak into a `Clip`: the stream, joined. Options and errors are those of `stream`."""
        return self.stream(text, streamed=False, stop=stop, **options).joined()

    def clear_caches(self) -> dict[str, int]:
        """Empty the caches: phonemes of sentences, first audio, voices.

        Returns
        -------
        dict
            The number of entries that each cache had.
        """
        cleared = {
            "phonemes": int(self.front_end.cache.figures()["entries"]),
            "first_audio": int(self.first_audio.figures()["entries"]),
            "voices": len(self.parts.voices),
        }
        for cache in (self.front_end.cache, self.first_audio, self.parts.voices):
            cache.clear()
        return cleared

    def shrink(self) -> int:
        """Have ONNX Runtime give back the memory that its arenas keep, after the next run of each session.
        Returns the number of sessions."""
        return shrink_arenas()

    def warm(
        self,
        voice: str = "af_heart",
        language: str | None = None,
        text: str = WARM_TEXT,
        *,
        stop: threading.Event | None = None,
    ) -> SynthesisReport:
        """Stream a long sentence to nobody, so that parts which load at their first use are loaded, and the
        memory that long segments take is allocated, before somebody listens. Before a single utterance, a
        short `text` will do. If `stop` is set meanwhile, `Interrupted` is raised."""
        language = resolve_language(language or self.voice(voice).language)
        self.front_end.warm(language)
        asked = checked_utterance(self.parts, text, {"voice": voice, "language": language}, streamed=True)
        stream = SpeechStream(self.parts, asked, cached=False, listened=False, stop=stop)
        for _ in stream:
            pass
        return stream.report

    def _stream_of(self, asked: CheckedUtterance, **how: Any) -> SpeechStream:
        """Make the stream; an engine that injects faults overrides this."""
        return SpeechStream(self.parts, asked, **how)


def configuration(
    variant: str | None = None, provider: str | None = None, *, tuned: bool = True
) -> EngineConfig:
    """The configuration of `load_engine`: the environment's values first, then those that were tuned."""
    said = EngineConfig.from_settings()
    config = replace(said, variant=variant or said.variant, provider=provider or said.provider)
    if not tuned:
        return config
    if settings().tuned == "off":
        return replace(config, tuned="no: KOKORO_TUNED=off")
    kept = set_by_user() | ({"provider"} if provider else set())
    found = with_tuned(config, model_sha256(weights_of(config.variant)), kept)
    if found.tuned.startswith("no:"):
        log.warning("What `kokoro-lab tune` found is not used: %s", found.tuned.removeprefix("no: "))
    elif found != config:
        log.info("Tuned: %s.", found.tuned)
    return found
