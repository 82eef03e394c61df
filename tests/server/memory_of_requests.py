"""How much a request makes the humming server grow: a line of JSON, for a process of its own.

python -m tests.server.memory_of_requests FOLDER REQUEST WAY
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from kokoro_lab.config import Settings
from kokoro_lab.datatypes import SynthesisReport
from kokoro_lab.serve import create_app
from kokoro_lab.server.health.watchdog import give_back_freed
from kokoro_lab.speech.stream import SpeechStream
from tests.server import scripted
from tests.server.conftest import SETTINGS, state_of, wait_until

TEN = "<break time='10s'/>"
SENTENCE = "The kettle is on the stove, and nobody is in the kitchen now. "
TEXT = (SENTENCE * 1_000)[:50_000]
BREAKS = "".join(f"{SENTENCE}{6 * TEN}" for _ in range(10))
DOCUMENT = f"<speak>{BREAKS}{(SENTENCE * 1_000)[: 35_000 - len(BREAKS) - 15]}</speak>"
"""As long as a file may be, with the breaks: an hour."""
REQUESTS: dict[str, dict[str, Any]] = {
    "text": {"input": TEXT},
    "document": {"input": DOCUMENT, "input_format": "ssml"},
    "slow": {"input": TEXT[:10_000], "speed": 0.5},
    "breaks": {"input": f"<speak>{BREAKS}</speak>", "input_format": "ssml"},
    "marks": {"input": "e" + "\u0301" * 49_999},
    "rows": {"input": ("1/" * 25_000)[:5_000]},
}
WAYS: dict[str, dict[str, Any]] = {
    "stream": {"response_format": "wav"},
    "wav": {"stream": False, "response_format": "wav"},
    "mp3": {"stream": False, "response_format": "mp3"},
    "words": {"stream": False, "response_format": "wav", "timestamps": True},
}
SPEED = 1.6
"""Each token of the humming voice lasts 0.1 s."""
REQUEST_MB, FILE_MB_A_SECOND = 64.0, 0.2
"""The bound that is stated in docs/serve.md."""


def memory_mb(name: str) -> float:
    """`VmRSS` or `VmHWM`, in MiB."""
    found = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024


def main(folder: str, name: str, way: str) -> None:
    app = create_app(
        scripted.engine(Path(folder) / "hum.onnx"), Settings(**{**SETTINGS, "max_input_chars": 50_000})
    )
    wait_until(lambda: state_of(app).warm_up.complete)
    client = app.test_client()
    audio_s: list[float] = []
    report_of = SpeechStream._make_report

    def noted(stream: SpeechStream) -> SynthesisReport:
        report = report_of(stream)
        audio_s.append(report.audio_s)
        return report

    def spoken(request: dict[str, Any]) -> tuple[int, int]:
        """The status, and how many bytes there were; they are not kept."""
        answer = client.post("/v1/audio/speech", json=request, buffered=False)
        size = sum(len(data) for data in answer.response)
        answer.close()
        return answer.status_code, size

    SpeechStream._make_report = noted  # type: ignore[method-assign]
    for _ in range(2):  # what is imported late is no part of a request
        spoken({"input": TEXT[:2_000], **WAYS[way]})
    give_back_freed()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    before_mb = memory_mb("VmRSS")
    status, size = spoken({"speed": SPEED, **REQUESTS[name], **WAYS[way]})
    grown_mb = memory_mb("VmHWM") - before_mb
    found = {"status": status, "bytes": size, "audio_s": audio_s[-1], "grown_mb": round(grown_mb, 1)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
