"""What is fuzzed with: texts of every script, mangled SSML, lexicons and messages, made from seeds and anew.

The seeds stand in `corpus/`, a file an input; what a run finds is added there, and every test run replays it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

CORPUS = Path(__file__).with_name("corpus")
BUDGET_S = float(os.environ.get("FUZZ_S", "60"))
"""Seconds of each fuzzer of this folder; `FUZZ_S=900 make test-long` takes a quarter of an hour of each."""
SEED = int(os.environ.get("FUZZ_SEED", "0"))
LANGUAGES = ("en-us", "en-gb", "es", "fr", "it", "pt-br", "hi", "ja", "zh")


def seeds(kind: str) -> list[str]:
    """The inputs of one kind that are kept, in the order of their names."""
    return [path.read_text("utf-8", errors="surrogatepass") for path in sorted((CORPUS / kind).glob("*"))]


def fuzzed(strategy: st.SearchStrategy[Any], check: Callable[[Any], None], budget_s: float = BUDGET_S) -> int:
    """Check inputs until the time is over, and count them; fails with the smallest that is wrong."""
    counted = 0

    def counting(made: Any) -> None:
        nonlocal counted
        counted += 1
        check(made)

    deadline, number = time.monotonic() + budget_s, SEED
    while time.monotonic() < deadline:
        options = settings(
            max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        seed(number)(options(given(strategy)(counting)))()
        number += 1
    return counted


# A block of 128 code points at a time: letters of one script beside each other, as people write
_BLOCKS = st.integers(0, 0x1FFFF // 128).map(lambda block: block * 128)
_SCRIPTS = _BLOCKS.flatmap(
    lambda start: st.text(
        st.characters(min_codepoint=max(1, start), max_codepoint=start + 127, exclude_categories=()),
        min_size=1,
        max_size=30,
    )
)
_MARKS = st.sampled_from(
    [
        *".,;:!?…-–—'\"()[]{}<>/\\|@#$%^&*_=+~`°№§ \n\t",
        "\u0301",
        "\u200d",
        "\u202e",
        "\ufeff",
        "\ufe0f",
        "0",
        "1",
        "10:",
    ]
)


def texts() -> st.SearchStrategy[str]:
    """Excerpts of seeds, of scripts and marks, one of them perhaps many times over."""
    known = seeds("text")
    excerpts = st.one_of(
        st.sampled_from(known).flatmap(lambda text: st.integers(0, len(text)).map(lambda at: text[at:][:80])),
        _SCRIPTS,
        _MARKS,
        st.text(max_size=20),
    )
    repeated = st.tuples(excerpts, st.integers(1, 300)).map(lambda made: (made[0] * made[1])[:2000])
    return st.lists(st.one_of(excerpts, excerpts, excerpts, repeated), max_size=12).map("".join)


TAGS = (
    *("<speak>", "</speak>", "<p>", "</p>", "<s>", "</s>", "<emphasis level='strong'>", "</emphasis>"),
    *("<break/>", "<break time='10s'/>", "<break time='1e9s'/>", "<break strength='x-strong'/>"),
    *("<prosody rate='50%'>", "<prosody pitch='+12st'>", "<prosody rate='nan'>", "</prosody>"),
    *("<say-as interpret-as='date' format='dmy'>", "<say-as interpret-as='cardinal'>", "</say-as>"),
    *(
        "<lang xml:lang='ja'>",
        "</lang>",
        "<!DOCTYPE x [<!ENTITY a 'b'>]>",
        "&a;",
        "&amp;",
        "&#0;",
        "<![CDATA[",
        "]]>",
    ),
    *("<!--", "-->", "<?xml version='1.0'?>", "<", ">", "99999999999999999999"),
)


def documents() -> st.SearchStrategy[str]:
    """SSML, well-formed now and then."""
    parts = st.lists(st.one_of(st.sampled_from(TAGS), texts().map(lambda text: text[:60])), max_size=25)
    known = st.sampled_from(seeds("ssml"))
    cut = st.tuples(known, st.integers(0, 400), st.integers(0, 400), st.sampled_from(TAGS)).map(
        lambda made: made[0][: made[1]] + made[3] + made[0][made[2] :]
    )
    whole = parts.map(lambda made: "<speak>" + "".join(made) + "</speak>")
    return st.one_of(whole, parts.map("".join), cut)


MARKS = (
    *("# ", "- ", "1. ", "> ", "```\n", "~~~py\n", "    ", "| a | b |\n|---|---|\n", "---\n", "$$\n"),
    *("[^1]: ", "*", "**", "_", "~~", "==", "`", "[", "](x)", "![", "][a]", "<b>", "<T>", "<!--", "$x^2$"),
    *("\\(", "\\", "|", "$\\frac{1}{", "\\sqrt", "{", "^", "&amp;", "  \n", "\r\n", "\n\n", "\n"),
)  # fmt: skip


def markdown() -> st.SearchStrategy[str]:
    """Markdown, and any text between its marks, one of them perhaps many times over."""
    repeated = st.tuples(st.sampled_from(MARKS), st.integers(1, 300)).map(lambda made: made[0] * made[1])
    words = texts().map(lambda text: text[:40])
    parts = st.one_of(st.sampled_from(MARKS), st.sampled_from(MARKS), words, repeated)
    known = st.sampled_from(seeds("markdown"))
    return st.one_of(st.lists(parts, max_size=25).map("".join), known.map(lambda text: text[:-7]))


def lexicons() -> st.SearchStrategy[Any]:
    """What a request may send as its lexicon: lists of entries, right and wrong, and what is no list."""
    names = st.sampled_from(["lang", "grapheme", "phoneme", "flags", "other"])
    values = st.one_of(
        st.sampled_from(["en", "en-gb", "*", "xx", "", "case", "plural", "ˈɛnʤən", "nginx", "a"]),
        st.text(max_size=20),
        st.none(),
        st.integers(),
        st.lists(st.text(max_size=3), max_size=2),
    )
    entry = st.dictionaries(names, values, max_size=5)
    return st.one_of(
        st.lists(entry, max_size=6), values, st.dictionaries(st.text(max_size=5), entry, max_size=2)
    )


def bodies() -> st.SearchStrategy[dict[str, Any]]:
    """Bodies of `POST /v1/audio/speech`: fields that there are, with values that are right and wrong."""
    wrong = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.just([]))
    fields = {
        "voice": st.sampled_from(
            ["af_heart", "bf_emma", "alloy", "jf_alpha", "af_bella(2)+af_sky", "nobody"]
        ),
        "speed": st.sampled_from([0.25, 0.5, 1, 1.5, 4, 4.1, "1.0", -1]),
        "response_format": st.sampled_from(["wav", "pcm", "mp3", "opus", "flac", "aac", "ogg", "exe"]),
        "stream": st.booleans(),
        "stream_format": st.sampled_from(["audio", "sse", "xml"]),
        "language": st.sampled_from([*LANGUAGES, "es-MX", "xx", ""]),
        "input_format": st.sampled_from(["text", "ssml", "markdown"]),
        "sample_rate": st.sampled_from([24_000, 22_050, 44_100, 48_000, 8_000]),
        "lexicon": lexicons(),
        "timestamps": st.booleans(),
        "seed": st.integers(-5, 5),
        "model": st.sampled_from(["kokoro", "tts-1", "fp32", "int8", "nope"]),
    }
    some = st.fixed_dictionaries(
        {"input": st.one_of(texts().map(lambda text: text[:120]), documents().map(lambda made: made[:200]))},
        optional={name: st.one_of(right, right, right, wrong) for name, right in fields.items()},
    )
    return st.one_of(some, some, some, st.dictionaries(st.text(max_size=8), wrong, max_size=4))


def messages() -> st.SearchStrategy[str | bytes]:
    """What a client may send over a WebSocket: messages that there are, halves of them, and noise."""
    kinds = st.sampled_from(["speak", "cancel", "resume", "ack", "close", "nothing", ""])
    said = st.tuples(kinds, bodies()).map(
        lambda made: json.dumps({"type": made[0], **made[1]}, default=str, allow_nan=True)
    )
    known = st.sampled_from(seeds("message"))
    return st.one_of(
        said, said, known, st.text(max_size=60), st.binary(max_size=60), said.map(lambda text: text[:-2])
    )
