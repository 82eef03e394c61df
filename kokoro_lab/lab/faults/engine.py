"""An engine with injected faults. It shares its models with an ordinary engine, which is not affected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from kokoro_lab.datatypes import AudioChunk, Samples, Word
from kokoro_lab.errors import ProviderError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.protocol import FixedReading, OnFallback, SentenceG2P
from kokoro_lab.g2p.speakers import Speakers
from kokoro_lab.lab.faults.injector import Injector
from kokoro_lab.lab.faults.scenario import Scenario
from kokoro_lab.lab.gates.forced import DecoderAround
from kokoro_lab.model.decoder import DecodedSegment, Decoder, SegmentRequest, StagedDecoder
from kokoro_lab.sessions.guarded_session import GuardedSession, Placement, Runs
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.parts import Parts
from kokoro_lab.speech.stream import SpeechStream
from kokoro_lab.speech.utterance import CheckedUtterance
from kokoro_lab.text.aligned import AlignedText

LOST = "A provider"


class FaultyEngine(Engine):
    """Speaks like `engine`, with the same models, but with the faults of `injector`.

    Parameters
    ----------
    engine : Engine
    injector : Injector
    reads_anew : bool
        Whether the engine loads G2Ps of its own, which can be made to stall. Loading takes a second.
    """

    def __init__(self, engine: Engine, injector: Injector, *, reads_anew: bool = True) -> None:
        parts = replace(
            engine.parts,
            decoder=_faulty_decoder(engine.decoder, injector),
            placement=lambda: _with_lost(engine.placement, injector),
            front_end=_faulty_front_end(engine, injector) if reads_anew else engine.front_end,
        )
        super().__init__(parts)
        self.injector = injector

    def _stream_of(self, asked: CheckedUtterance, **how: Any) -> SpeechStream:
        return FaultyStream(self.injector, self.parts, asked, **how)


def _with_lost(placement: Placement, injector: Injector) -> Placement:
    """`placement` with the providers that were lost on purpose, as if they had failed by themselves."""
    return replace(placement, fallbacks=(*placement.fallbacks, *injector.lost))


@contextmanager
def injected(engine: Engine, scenario: Scenario) -> Iterator[FaultyEngine]:
    """A context that gives an engine with the faults of `scenario`, for tests and notebooks."""
    faulty = FaultyEngine(engine, Injector(scenario), reads_anew=bool(scenario.of_seam("g2p")))
    try:
        yield faulty
    finally:
        faulty.injector.disarm()


def _faulty_front_end(engine: Engine, injector: Injector) -> FrontEnd:
    def around(g2p: SentenceG2P) -> SentenceG2P:
        def read(
            sentence: AlignedText, on_fallback: OnFallback, given: Sequence[FixedReading] = ()
        ) -> list[Word]:
            injector.before_sentence()  # it may be made to wait
            return g2p(sentence, on_fallback, given)

        return read

    return FrontEnd(lexicons=engine.front_end.lexicons, speakers=Speakers(around=around))


class FaultyStream(SpeechStream):
    """A stream whose chunks may be delayed or lost. Chunks of a file pass no queue, so a file stays
    complete."""

    def __init__(self, injector: Injector, parts: Parts, asked: CheckedUtterance, **how: Any) -> None:
        self._injector = injector
        self._over = False
        injector.enter()
        try:
            super().__init__(parts, asked, **how)
        except BaseException:
            self._leave()
            raise

    def __next__(self) -> AudioChunk:
        while True:
            try:
                chunk = super().__next__()
            except BaseException as error:
                if isinstance(error, StopIteration) and not self._over:
                    self._injector.spoke(self.timings, self.sent_samples)
                self._leave()
                raise
            if not self._asked.streamed or self._injector.before_chunk():
                return chunk

    def close(self) -> None:
        self._leave()
        super().close()

    def _leave(self) -> None:
        if not self._over:
            self._over = True
            self._injector.leave()


def _faulty_decoder(decoder: Decoder, injector: Injector) -> Decoder:
    """A decoder with some windows that fail.

    In a variant with stages, the provider is lost inside the vocoder's session, which tests `GuardedSession`;
    in others, each block of samples counts as a window, and the stream gets the error.
    """
    if isinstance(decoder, StagedDecoder):
        return decoder.through(partial(FaultySession, injector))

    def struck(blocks: Iterator[Samples]) -> Iterator[Samples]:
        for block in blocks:
            if injector.at_window():
                raise ProviderError(f"{LOST} was lost on purpose.", field="provider")
            yield block

    def decode(asked: SegmentRequest) -> DecodedSegment:
        decoded = decoder.decode(asked)
        return replace(decoded, blocks=struck(decoded.blocks))

    return DecoderAround(decoder, decode)


class FaultySession(GuardedSession):
    """A stage's session that loses its provider or runs out of memory on purpose, at the windows that the
    injector names.

    For that one run, a `GuardedSession` around a provider that raises makes its spare session, as after a
    real loss. The next run uses the ordinary session again, so that the fault can be repeated.
    """

    def __init__(self, injector: Injector, session: GuardedSession, on_cpu: Callable[[], Runs]) -> None:
        self._session = session  # all other attributes are those of the ordinary session
        self._injector = injector
        self._on_cpu = on_cpu

    def run(self, names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[Any]:
        if not self._injector.at_window():
            return self._session.run(names, feed)
        guard = GuardedSession(self.stage, _Lost(), LOST, spare=self._on_cpu)
        try:
            return guard.run(names, feed)
        finally:
            self._injector.lost += [lost for lost in guard.fallbacks if lost not in self._injector.lost]


class _Lost:
    def run(self, names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[Any]:
        raise RuntimeError("lost on purpose")
