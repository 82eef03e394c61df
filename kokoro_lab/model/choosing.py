"""Chooses one of several decoders: for a segment by measured costs, or for a text by its length.

A provider that is slow to start and then fast suits long sentences, not short ones. Costs are measured once,
on speech of three lengths, and kept (`cost_cache`); then the choice depends on the length alone, so that the
same request gives the same samples as long as the costs are believed.

With one provider, too, some options suit short texts and others long ones. The notebook `10_provider_ab`
measures which of two configurations is heard sooner, and from which length on; `KOKORO_BY_LENGTH` sets the
two and the length (`ByLength`).
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from kokoro_lab.datatypes import Fallback, ProviderChoice
from kokoro_lab.engine_config import ByLengthSetting, EngineConfig
from kokoro_lab.errors import ProviderError
from kokoro_lab.g2p.vocab import encode
from kokoro_lab.model.decoder import DecodedSegment, Decoder, SegmentRequest
from kokoro_lab.sessions.cost_cache import CostCache, CostCacheError, SegmentCost, conditions_here
from kokoro_lab.sessions.guarded_session import Placement
from kokoro_lab.sessions.provider_registry import usable_providers
from kokoro_lab.weights.voices import Voice

log = logging.getLogger(__name__)

LENGTHS = (20, 60, 180)
"""Lengths in token ids: a few words, a sentence, a long sentence."""
PREDICTIONS = 3
"""How many predictions of each length are timed, after one that is not: some providers compile a graph for a
shape when they first meet that shape."""
MARGIN = 0.1
"""How much less another provider must cost than the first one: smaller differences are within the error of
measurement."""
SPOKEN = "ðə ɹˈɪvəɹ lˈivz ðə hˈɪlz wɪðˌaʊt hˈɜɹi, tˈɜɹnz twˈIs əɹˈWnd ðə mˈɪl, ænd ɹˈɛsts. "


class PlacedDecoder(Decoder, Protocol):
    """A decoder that says where it runs."""

    @property
    def placement(self) -> Placement:
        """Where each stage runs at this moment."""


class SeveralDecoders:
    """The base of decoders that pass each segment on to one of several decoders.

    Parameters
    ----------
    decoders : iterable of PlacedDecoder
    main : PlacedDecoder
        The decoder whose placement is reported; `SynthesisReport.choices` has the provider of each segment.
    """

    def __init__(self, decoders: Iterable[PlacedDecoder], main: PlacedDecoder) -> None:
        self._several = tuple(decoders)
        self._main = main

    @property
    def placement(self) -> Placement:
        """The main decoder's placement, with the fallbacks of all of them."""
        fallbacks = (f for decoder in self._several for f in decoder.placement.fallbacks)
        return replace(self._main.placement, fallbacks=tuple(dict.fromkeys(fallbacks)))

    def predicts(self, voice: Voice) -> str | None:
        return next((why for d in self._several if (why := d.predicts(voice)) is not None), None)


class ByCost(SeveralDecoders):
    """Each segment goes to the decoder that costs least for its length.

    Parameters
    ----------
    decoders : mapping of str to PlacedDecoder
        Decoders by provider. The first one wins ties, and is the main decoder.
    costs : mapping of str to SegmentCost
        The measured costs of each provider.
    """

    def __init__(self, decoders: Mapping[str, PlacedDecoder], costs: Mapping[str, SegmentCost]) -> None:
        self._decoders = dict(decoders)
        self._costs = {name: costs[name] for name in decoders}
        self._first = next(iter(decoders))
        super().__init__(self._decoders.values(), self._decoders[self._first])

    @property
    def details(self) -> Mapping[str, str]:
        # A stream that broke is resumed only by an engine that makes the same choices
        chosen = ", ".join(f"{name} {cost.points}" for name, cost in self._costs.items())
        return {**self._main.details, "chosen_by_cost": chosen}

    def choose(self, token_count: int) -> ProviderChoice:
        """The provider for a segment of `token_count` ids, and a reason with its cost and the others'."""
        seconds = {name: cost.seconds(token_count) for name, cost in self._costs.items()}
        cheapest = min(seconds, key=lambda name: seconds[name])
        told = ", ".join(f"{name} {1000 * s:.0f} ms" for name, s in seconds.items())
        if seconds[cheapest] <= (1 - MARGIN) * seconds[self._first]:
            return ProviderChoice(cheapest, f"costs least for {token_count} token ids: {told}")
        return ProviderChoice(
            self._first, f"no other costs {MARGIN:.0%} less for {token_count} token ids: {told}"
        )

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        choice = self.choose(len(asked.token_ids))
        return replace(self._decoders[choice.provider].decode(asked), choice=choice)


def measured_cost(
    decoder: Decoder, voice: Voice, clock: Callable[[], float] = time.perf_counter
) -> SegmentCost:
    """Median seconds that `decoder` takes for a segment of each of `LENGTHS`, as a stream decodes it."""
    points = []
    for count in LENGTHS:
        token_ids = (encode(SPOKEN) * (1 + count // len(SPOKEN)))[:count]
        seconds = []
        for _ in range(1 + PREDICTIONS):
            begun_s = clock()
            asked = SegmentRequest(token_ids, voice.style(count), predicted=not decoder.predicts(voice))
            decoded = decoder.decode(asked)
            for _ in decoded.blocks:
                pass
            seconds.append(clock() - begun_s)
        points.append((count, statistics.median(seconds[1:])))
    return SegmentCost(tuple(points))


def chosen_by_cost(
    config: EngineConfig,
    model_sha256: str,
    voice: Callable[[], Voice],
    make: Callable[[EngineConfig], PlacedDecoder],
    providers: Sequence[str] | None = None,
) -> tuple[PlacedDecoder, tuple[Fallback, ...], str]:
    """A decoder that chooses between the available providers; with one provider, the decoder on that one.

    Parameters
    ----------
    config : EngineConfig
        The engine's configuration; `provider` is not looked at.
    model_sha256 : str
        SHA-256 of its weights.
    voice : callable
        Returns the voice for measuring costs, if they must be measured.
    make : callable
        Makes a decoder for a configuration that names a provider.
    providers : sequence of str, optional
        The providers to choose from; `usable_providers` unless given.

    Returns
    -------
    decoder : PlacedDecoder
    fallbacks : tuple of Fallback
        Providers that could not be loaded, and costs that could not be read or kept.
    reason : str
        Why the provider was chosen, for segments for which `decoder` does not choose.

    Raises
    ------
    ProviderError
        No provider at all can be loaded.
    """
    decoders: dict[str, PlacedDecoder] = {}
    fallbacks: list[Fallback] = []
    refused: ProviderError | None = None
    for name in usable_providers() if providers is None else providers:
        try:
            decoders[name] = make(replace(config, provider=name))
        except ProviderError as error:
            refused = error
            fallbacks.append(Fallback("provider", f"{name} is left out: {error}"))
    if not decoders:
        raise refused or ProviderError("There is no provider to choose from.", field="provider")
    if len(decoders) == 1:
        (only,) = decoders
        reason = f"{only} is the only provider here: there is nothing to choose"
        return decoders[only], _logged(fallbacks), reason
    cache = CostCache(config.home, config.cost_ttl_s)
    conditions = conditions_here(config, model_sha256)
    costs: Mapping[str, SegmentCost] = {}
    try:
        found = cache.find(conditions)
        costs = found.costs
        log.info("Costs of providers: %s", found.reason)
    except CostCacheError as error:
        fallbacks.append(Fallback("costs", str(error)))
    if not decoders.keys() <= costs.keys():
        before = {name: decoder.placement.active_provider for name, decoder in decoders.items()}
        costs = {name: measured_cost(decoder, voice()) for name, decoder in decoders.items()}
        lost = [
            name for name, decoder in decoders.items() if decoder.placement.active_provider != before[name]
        ]
        if lost:  # the CPU did its work, so the time is not this provider's cost
            fallbacks.append(Fallback("costs", f"not kept: {', '.join(lost)} was lost while it was measured"))
        else:
            try:
                cache.keep(conditions, costs)
            except OSError as error:
                fallbacks.append(Fallback("costs", f"not kept, and measured at every start: {error}"))
    return ByCost(decoders, costs), _logged(fallbacks), ""


def _logged(fallbacks: Sequence[Fallback]) -> tuple[Fallback, ...]:
    for fallback in fallbacks:
        log.warning("%s: %s", fallback.stage, fallback.reason)
    return tuple(fallbacks)


class ByLength(SeveralDecoders):
    """Two decoders, for short and for long texts. `of_text` gives the one for a text.

    Parameters
    ----------
    setting : ByLengthSetting
        The threshold, and both configurations as the user wrote them.
    below, above : PlacedDecoder
        The decoders for texts shorter than the threshold, and for all others; `above` is the main decoder.
    """

    def __init__(self, setting: ByLengthSetting, below: PlacedDecoder, above: PlacedDecoder) -> None:
        super().__init__((below, above), above)
        self._setting = setting
        self.below = below
        self.above = above

    def of_text(self, characters: int) -> tuple[PlacedDecoder, ProviderChoice]:
        """The decoder for a text of `characters`, and the reason."""
        setting, limit = self._setting, self._setting.threshold_characters
        short = characters < limit
        decoder, name = (self.below, setting.below) if short else (self.above, setting.above)
        relation = "under" if short else "not under"
        reason = f"KOKORO_BY_LENGTH: {characters} characters are {relation} {limit}: {name}"
        return decoder, ProviderChoice(decoder.placement.active_provider, reason)

    @property
    def details(self) -> Mapping[str, str]:
        return {**self.above.details, "below": str(self.below.placement), "by_length": str(self._setting)}

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        """Decode with the decoder of long texts: the length of a segment's text is not known here."""
        return self.above.decode(asked)
