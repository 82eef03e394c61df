"""Show that a change of structure changes nothing that users get (5 minutes; fetched weights).

python scripts/unchanged.py record BEFORE.json       in the old tree
python scripts/unchanged.py record AFTER.json        in the new one, on the same machine in the same hour
python scripts/unchanged.py compare BEFORE.json AFTER.json

Recorded are hashes of samples (streams and files of the golden plan, of the English fixtures and of texts
of other kinds, with `fp32` and `int8`), of what `kokoro-lab text` prints for the fixtures, of `/openapi.json`
and of every command's help. Only what the package promises is called, so the script fits trees of any shape.
Exits with 1 if two records differ.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures" / "texts"
VARIANTS = ("fp32", "int8")
ENGLISH = "The kettle is on, and the window is open."
SSML = {"input_format": "ssml"}
OTHERS: tuple[dict[str, Any], ...] = (
    {"text": ENGLISH, "speed": 0.5},
    {"text": ENGLISH, "speed": 3.0},
    {"text": ENGLISH, "voice": "af_nicole+am_onyx"},
    {"text": ENGLISH, "voice": "bf_emma(2)+bm_george(1)", "speed": 1.2},
    {"text": ENGLISH, "loudness": "none"},
    {"text": ENGLISH, "statistics": "exact"},
    {"text": ENGLISH, "lexicon": {"kettle": "k\u02c8\u028atl"}},
    {"text": '<speak>Wait <break time="700ms"/> for <prosody rate="80%">me</prosody>.</speak>', **SSML},
    {"text": '<speak><say-as interpret-as="digits">2027</say-as>, <emphasis>now</emphasis>.</speak>', **SSML},
    {"text": "Doctor Smith paid $3.50 on 3/4/2026 at 7:05 p.m., and 12 kg of it was 45 °C."},
    {"text": "Hello there.", "voice": "bf_emma", "speed": 1.5},
    {"text": "Yes. No! Really? :) 🎉 Well, perhaps… 100 %"},
    {"text": "¿Qué tal? Son las 7:05 y pago 3,50 €.", "voice": "ef_dora"},
    {"text": "Bonjour, il est midi.", "voice": "ff_siwis"},
    {"text": "Buongiorno a tutti.", "voice": "if_sara"},
    {"text": "Bom dia a todos.", "voice": "pf_dora"},
    {"text": "नमस्ते दुनिया", "voice": "hf_alpha"},
    {"text": "今日は良い天気です。", "voice": "jf_alpha"},
    {"text": "Er sagte: C'est la vie, y nada más.", "voice": "af_heart", "detect_languages": True},
)  # fmt: skip


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def progress(step: str) -> None:
    sys.stderr.write(f"\r{step:60}")


def digest(*parts: bytes | str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of `parts`."""
    joined = b"\0".join(part.encode() if isinstance(part, str) else part for part in parts)
    return hashlib.sha256(joined).hexdigest()[:16]


def texts(file: Path) -> dict[str, str]:
    """The texts of a fixture by their ids, or by their lines where they have none."""
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    named = ((str(line.get("id", number)), line) for number, line in enumerate(lines))
    return {name: whole(line) for name, line in named}


def whole(line: dict[str, Any]) -> str:
    """The text of a line of a fixture; a line with runs in several languages has them joined."""
    runs: list[list[str]] = line.get("runs", [])
    return line.get("text") or line.get("written") or "".join(run[1] for run in runs)


def wanted() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is spoken, each with its name."""
    english = texts(FIXTURES / "english.jsonl")
    for case in json.loads((ROOT / "golden" / "plan.json").read_text("utf-8"))["cases"]:
        found = texts(FIXTURES / f"{case.get('texts', 'english')}.jsonl")[case["text"]]
        yield (
            f"golden {case['name']}",
            {"text": found, "voice": case["voice"], "speed": case.get("speed", 1.0)},
        )
    yield from ((f"english {name}", {"text": text}) for name, text in english.items())
    yield from ((f"other {number}", dict(asked)) for number, asked in enumerate(OTHERS))


def heard() -> Iterator[tuple[str, str]]:
    """Hashes of float32 samples and of the words' times, stream and file."""
    import kokoro_lab as kl

    for variant in VARIANTS:
        engine = kl.load_engine(variant)
        for name, asked in wanted():
            text = asked.pop("text")
            try:
                clip = engine.synthesize(text, **asked)
                chunks = list(engine.stream(text, **asked))
            except kl.KokoroLabError as error:
                yield f"{variant} {name}", digest(str(error))
                continue
            yield f"{variant} file {name}", digest(clip.samples.tobytes(), repr(clip.timings))
            places = repr([(chunk.segment_id, chunk.chunk_id, chunk.start_s) for chunk in chunks])
            yield f"{variant} stream {name}", digest(*(chunk.samples.tobytes() for chunk in chunks), places)
            progress(f"{variant} {name:40}")


def command(*arguments: str, text: str = "") -> str:
    """What `kokoro-lab` prints on standard output. Errors are part of what is promised, so none is raised."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "kokoro_lab", *arguments],
        input=text, capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    return f"{done.returncode}\n{done.stdout}"


def read() -> Iterator[tuple[str, str]]:
    """Hashes of what `kokoro-lab text` prints for each fixture."""
    for file in sorted(FIXTURES.glob("*.jsonl")):
        language = {"spanish": "es", "es": "es", "ja": "ja", "zh": "zh"}.get(
            file.stem.rpartition("_")[2], "en-us"
        )
        lines = "\n".join(text.replace("\n", " ") for text in texts(file).values())
        progress(f"text {file.name:40}")
        yield f"text {file.name}", digest(command("text", "--language", language, text=lines))


def helps() -> Iterator[tuple[str, str]]:
    """Hashes of the help of each command."""
    yield "help", digest(first := command("--help"))
    for name in re.findall(r"^  ([a-z]+)  ", first.partition("Commands:")[2], re.MULTILINE):
        yield f"help {name}", digest(command(name, "--help"))


def described() -> Iterator[tuple[str, str]]:
    """The hash of `/openapi.json`, of the server that users start."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen(
        [sys.executable, "-m", "kokoro_lab", "serve", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        found = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+", line) for line in server.stdout)))
        with urllib.request.urlopen(f"{found[0]}/openapi.json", timeout=120) as answer:
            yield "openapi.json", digest(json.dumps(json.load(answer), sort_keys=True))
    finally:
        server.terminate()
        server.communicate()


def record(path: Path) -> None:
    """Write all hashes to `path`."""
    found = {name: value for source in (helps, described, read, heard) for name, value in source()}
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    say(f"\n{len(found)} hashes in {path}")


def compare(before: Path, after: Path) -> int:
    """Print what differs; how many do."""
    old, new = (json.loads(path.read_text("utf-8")) for path in (before, after))
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    for name in differing:
        say(f"differs: {name} ({old.get(name, 'absent')} before, {new.get(name, 'absent')} after)")
    say(f"{len(differing)} of {len({**old, **new})} differ")
    return len(differing)


def main() -> None:
    match sys.argv[1:]:
        case ["record", path]:
            record(Path(path))
        case ["compare", before, after]:
            sys.exit(bool(compare(Path(before), Path(after))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
