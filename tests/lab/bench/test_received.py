"""First audio is the first chunk that is heard, and two streams are compared sample for sample."""

from __future__ import annotations

import pytest

from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.received import ReceivedChunk, differences, to_the_end


def test_first_audio_is_the_first_frame_that_is_heard() -> None:
    frames = [
        ReceivedChunk("0.0", b"\0\0" * 1200),
        ReceivedChunk("0.1", b"\0\x20" * 1200),
        ReceivedChunk("0.2", b"\0\x20" * 600),
    ]
    found = to_the_end(frames)
    assert found.ttfa_s == found.arrivals_s[1]
    assert found.audio_s == pytest.approx(0.125)


def test_a_stream_of_silence_is_a_failure() -> None:
    with pytest.raises(SynthesisError, match="without any speech"):
        to_the_end([ReceivedChunk("0.0", b"\0\0" * 1200)])


@pytest.mark.parametrize(
    ("joined", "uncut", "found"),
    [
        (b"abcd", b"abcd", (0, 0)),
        (b"abXd", b"abcd", (1, 0)),
        (b"ab", b"abcdef", (0, 2)),
        (b"abcdab", b"abcd", (0, -1)),
    ],
)
def test_differences_are_counted_in_samples(joined: bytes, uncut: bytes, found: tuple[int, int]) -> None:
    assert differences(joined, uncut) == found
