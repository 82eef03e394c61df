"""Two decoders, and the length of a text that divides them.

A provider that starts slowly and then runs fast is the wrong one for a short text, and of one provider some
options suit short texts and others long ones. `10_provider_ab` measures from which length on which of two
configurations is heard sooner; `KOKORO_BY_LENGTH` sets that. The choice depends on the text alone: the same
request gives the same samples.
"""

from __future__ import annotations

from collections.abc import Mapping

from kokoro_lab.datatypes import ProviderChoice
from kokoro_lab.engine_config import ByLengthSetting
from kokoro_lab.model.by_cost import PlacedDecoder, SeveralDecoders
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest


class ByLength(SeveralDecoders):
    """A `Decoder` over two. Who knows the text asks `of_text` for the one that speaks it.

    Parameters
    ----------
    setting : ByLengthSetting
        The threshold, and how both are written.
    below, above : PlacedDecoder
        For texts shorter than the threshold, and for the others; the latter is the main one.
    """

    def __init__(self, setting: ByLengthSetting, below: PlacedDecoder, above: PlacedDecoder) -> None:
        super().__init__((below, above), above)
        self._setting = setting
        self.below = below
        self.above = above

    def of_text(self, characters: int) -> tuple[PlacedDecoder, ProviderChoice]:
        """The decoder of a text of so many characters, and why it is that one."""
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
        """As the decoder of long texts does: of a segment alone, the length of its text is not known."""
        return self.above.decode(asked)
