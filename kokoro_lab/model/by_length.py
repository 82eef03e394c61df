"""Two decoders, and the length of a text that divides them.

A provider that starts slowly and then runs fast is the wrong one for a short text, and of one provider some
options suit short texts and others long ones. `10_provider_ab` measures from which length on which of two
configurations is heard sooner; `KOKORO_BY_LENGTH` sets that. The choice depends on the text alone: the same
request gives the same samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kokoro_lab.datatypes import ProviderChoice
from kokoro_lab.engine_config import ByLengthSetting
from kokoro_lab.model.by_cost import PlacedDecoder
from kokoro_lab.model.decoder import DecodedSegment, Decoder, SegmentRequest
from kokoro_lab.sessions.placement import Placement
from kokoro_lab.weights.voices import Voice


@dataclass(frozen=True, slots=True)
class ByLength:
    """A `Decoder` over two. Who knows the text asks `of_text` for the one that speaks it.

    Parameters
    ----------
    setting : ByLengthSetting
        The threshold, and how both are written.
    below, above : PlacedDecoder
        For texts shorter than the threshold, and for the others.
    """

    setting: ByLengthSetting
    below: PlacedDecoder
    above: PlacedDecoder

    def of_text(self, characters: int) -> ForText:
        """The decoder of a text of so many characters, and why it is that one."""
        limit = self.setting.threshold_characters
        short = characters < limit
        decoder, name = (self.below, self.setting.below) if short else (self.above, self.setting.above)
        relation = "under" if short else "not under"
        reason = f"KOKORO_BY_LENGTH: {characters} characters are {relation} {limit}: {name}"
        return ForText(decoder, ProviderChoice(decoder.active_provider, reason))

    @property
    def placement(self) -> Placement:
        """That of long texts: `SynthesisReport.choices` has those of the segments. Fallbacks are of both."""
        both = (*self.below.placement.fallbacks, *self.above.placement.fallbacks)
        return replace(self.above.placement, fallbacks=tuple(dict.fromkeys(both)))

    @property
    def active_provider(self) -> str:
        return self.placement.active_provider

    @property
    def details(self) -> Mapping[str, str]:
        return {**self.above.details, "below": str(self.below.placement), "by_length": str(self.setting)}

    def predicts(self, voice: Voice) -> str | None:
        return self.below.predicts(voice) or self.above.predicts(voice)

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        """As the decoder of long texts does: of a segment alone, the length of its text is not known."""
        return self.above.decode(asked)


@dataclass(frozen=True, slots=True)
class ForText:
    """A decoder, and why its provider speaks this text."""

    decoder: PlacedDecoder
    choice: ProviderChoice

    @property
    def details(self) -> Mapping[str, str]:
        return self.decoder.details

    def predicts(self, voice: Voice) -> str | None:
        return self.decoder.predicts(voice)

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        decoded = self.decoder.decode(asked)
        return decoded if decoded.choice else replace(decoded, choice=self.choice)


def for_text(decoder: Decoder, characters: int) -> Decoder:
    """The decoder that speaks a text of so many characters: the one given, unless it is a `ByLength`."""
    return decoder.of_text(characters) if isinstance(decoder, ByLength) else decoder
