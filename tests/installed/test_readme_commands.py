"""Every command that the README and the pages in docs/ name is run, on the real weights, as it stands there.

What takes minutes runs smaller: fewer trials, shorter texts. Only a command that another test runs, or that
wants a machine which is not here, is not run by this file; it says so.
"""

from __future__ import annotations

import re
import shlex
import wave
from dataclasses import dataclass, field

import pytest

from tests.documentation import PAGES, ROOT
from tests.installed.command import SCRIPT, Installed


@dataclass(frozen=True)
class Line:
    """A command as it is written, and what shows that it works.

    Parameters
    ----------
    written : str
        As it stands in a page, less the folder of the script and the remark behind it.
    says : str
        A regular expression that its output holds.
    smaller : str
        What is run in its place, where that takes less time; empty runs it as it is written.
    leaves : str
        A file that it leaves in its folder.
    tested_by : str
        The test that runs it, or what it needs, if this file does not.
    slow : bool
        Left to `make test-all`.
    """

    written: str
    says: str = ""
    smaller: str = ""
    leaves: str = ""
    tested_by: str = ""
    slow: bool = False
    exit_codes: tuple[int, ...] = field(default=(0,))


KEPT = r"kept in .*results"
SHORT = "--preset short"
LINES = (
    Line('kokoro-lab speak "Hello there." --play', r"speech", leaves="played"),
    Line('kokoro-lab speak "Hello there." -o hello.wav', r"TTFA +\d+\.\d+ s", leaves="hello.wav"),
    Line(
        'kokoro-lab speak "Hello there. This is Kokoro, a small speech model that sounds like a person. '
        'It runs on your own machine." -o hello.mp3',
        r"speech [56]\.\d+ s",
        leaves="hello.mp3",
    ),
    Line(
        'kokoro-lab speak -i article.txt --voice "af_bella(2)+af_sky(1)" --speed 1.2 --play',
        r"voice af_bella\(2\)\+af_sky\(1\)",
        leaves="played",
    ),
    Line("kokoro-lab speak -i article.txt --play --stream", r"TTFA", leaves="played"),
    Line(
        "kokoro-lab speak -i article.txt -o article.mp3 --captions article.srt",
        r"speech",
        leaves="article.srt",
    ),
    Line(
        "cat article.txt | kokoro-lab speak -i - --tee --play",
        r"The kettle is on.*live text",
        leaves="played",
    ),
    Line(
        "kokoro-lab speak --input-format ssml '<speak>It is <emphasis>not</emphasis> me. "
        '<break time="250ms"/> Is it you?</speak>\'',
        r"speech \d\.\d+ s",
        leaves="speech.wav",
    ),
    Line(
        "kokoro-lab speak --input-format markdown -i answer.md",
        r"speech \d\.\d+ s(?:.|\n)*note +text: code in Python left out",
        leaves="speech.wav",
    ),
    Line("kokoro-lab speak -h", r"--captions"),
    Line('kokoro-lab speak "Does nginx run?" --lexicon words.tsv', r"speech", leaves="speech.wav"),
    Line("kokoro-lab text 'Dr. Smith didn’t pay $3.50.'", r'"normalized": "Doctor Smith .*three dollars'),
    Line("kokoro-lab text", r'"phonemes"', smaller='echo "Hello there." | kokoro-lab text'),
    Line("kokoro-lab doctor", r"ok +weights int8|ok +weights fp32"),
    Line("kokoro-lab doctor --deep", r"ok +weights fp32: complete", slow=True),
    Line("kokoro-lab fetch --list", r"af_heart"),
    Line("kokoro-lab fetch", r"", smaller="kokoro-lab fetch --variant int8"),
    Line("kokoro-lab fetch --variant int8", r"files? fetched|were there"),
    Line("kokoro-lab fetch --to", tested_by="tests/weights/test_store.py"),
    Line("kokoro-lab fetch --recogniser", r"", smaller="kokoro-lab fetch --variant int8 --recogniser"),
    Line("kokoro-lab fetch --voice-encoder", r"", smaller="kokoro-lab fetch --variant int8 --voice-encoder"),
    Line(
        "kokoro-lab fetch --variant int8 --to weights",
        r"weights holds 60 files \(360 MB\), 60 of them written now",
        leaves="weights/kokoro-weights.json",
        slow=True,
    ),
    Line(
        "kokoro-lab fetch --from weights",
        r"60 files fetched, 0 were there",
        "kokoro-lab fetch --variant int8 --to weights && "
        "KOKORO_HOME=$PWD/away kokoro-lab fetch --from weights",
        leaves="away/weights/kokoro-v1.0.fp32.onnx",
        slow=True,
    ),
    Line(
        'KOKORO_SOURCE=/media/weights kokoro-lab speak "Hello there."',
        r"speech",
        "kokoro-lab fetch --variant int8 --to weights && "
        'KOKORO_HOME=$PWD/away KOKORO_SOURCE=$PWD/weights kokoro-lab speak "Hello there."',
        leaves="speech.wav",
        slow=True,
    ),
    Line("kokoro-lab tune --show", r"int8"),
    Line("kokoro-lab run", r"00_quickstart .*Does it speak"),
    Line("kokoro-lab run --list", r"00_quickstart .*Does it speak"),
    Line("kokoro-lab run 30_loudness_gate --list", r"-p voices="),
    Line("kokoro-lab run 30_loudness_gate --fast", tested_by="tests/installed/test_running.py"),
    Line("kokoro-lab completion bash", r"_KOKORO_LAB_COMPLETE=bash_complete"),
    Line(
        "kokoro-lab player --pipe - < hello.wav",
        r"",
        smaller="kokoro-lab player --sink null --pipe - < hello.wav",
    ),
    Line("kokoro-lab player", tested_by="tests/installed/test_player.py"),
    Line("kokoro-lab player --pipe speech.fifo", tested_by="tests/playback/test_player_program.py"),
    Line("kokoro-lab player --sink file -o heard.wav", tested_by="tests/playback/test_player_program.py"),
    Line(
        "kokoro-lab player --soak-minutes 10",
        r"passed",
        smaller="kokoro-lab player --soak-minutes 0.2",
        slow=True,
    ),
    Line("kokoro-lab serve", tested_by="tests/installed/test_serve.py"),
    Line("KOKORO_VARIANT=fp32 kokoro-lab serve", tested_by="tests/installed/test_serve.py"),
    Line("kokoro-lab wyoming", tested_by="tests/installed/test_wyoming.py"),
    Line("kokoro-lab wyoming --host 0.0.0.0", tested_by="tests/installed/test_wyoming.py"),
    Line("kokoro-lab service install", tested_by="tests/installed/test_service.py"),
    Line(
        "KOKORO_VARIANT=fp32 kokoro-lab service install --port 8890", tested_by="tests/server/test_service.py"
    ),
    Line("kokoro-lab service install --print", r"serve|ProgramArguments"),
    Line("kokoro-lab service status", tested_by="tests/installed/test_service.py"),
    Line("kokoro-lab service remove", tested_by="tests/installed/test_service.py"),
    Line(
        "kokoro-lab bench --preset medium --trials 30",
        KEPT,
        f"kokoro-lab bench {SHORT} --trials 1",
        slow=True,
    ),
    Line(
        "kokoro-lab bench --variant int8",
        KEPT,
        f"kokoro-lab bench --variant int8 {SHORT} --trials 1",
        slow=True,
    ),
    Line(
        "kokoro-lab bench --http --preset long --trials 30",
        KEPT,
        f"kokoro-lab bench --http {SHORT} --trials 1",
        slow=True,
    ),
    Line(
        "kokoro-lab bench --http --peers --preset medium --trials 30",
        r"ours / peer",
        f"kokoro-lab bench --http --peers {SHORT} --trials 1",
        slow=True,
    ),
    Line(
        "kokoro-lab bench --preset article --trials 5 --memory",
        r"MB",
        f"kokoro-lab bench {SHORT} --trials 1 --memory",
        slow=True,
    ),
    Line(
        "KOKORO_PORT=8881 kokoro-lab serve & KOKORO_PORT=8882 kokoro-lab serve &",
        tested_by="tests/server/test_balancer.py",
    ),
    Line(
        "kokoro-lab bench --piper piper/bin/python --preset medium --trials 12",
        tested_by="tests/lab/bench/test_peers.py",
    ),
    Line(
        "kokoro-lab bench --chunk-ms 120 --save-audio --json",
        r'"ttfa_s"',
        f"kokoro-lab bench --chunk-ms 120 --save-audio --json {SHORT} --trials 1",
        slow=True,
    ),
    # The limits of the next four are times, which a busy machine misses (exit code 1): here they only measure
    Line(
        "kokoro-lab bench resume --preset long --trials 40",
        r"with both: 1 exact",
        f"kokoro-lab bench resume {SHORT} --trials 1",
        slow=True,
        exit_codes=(0, 1),
    ),
    Line(
        "kokoro-lab bench load --arrivals 0.6",
        r"listeners should be borne",
        f"kokoro-lab bench load {SHORT} --listeners 2 --seconds 4 --arrivals 0.6 --trials 2",
        slow=True,
        exit_codes=(0, 1),
    ),
    Line(
        "kokoro-lab bench lifecycle --trials 4",
        r"kill -9",
        "kokoro-lab bench lifecycle --trials 1",
        slow=True,
        exit_codes=(0, 1),
    ),
    Line(
        "kokoro-lab bench soak --minutes 20",
        r"RSS|resident|drift",
        "kokoro-lab bench soak --minutes 0.2 --trials 2",
        slow=True,
        exit_codes=(0, 1),
    ),
    Line(
        "kokoro-lab bench live",
        r"first sound",
        "kokoro-lab bench live --trials 3",
        slow=True,
        exit_codes=(0, 1),
    ),
    Line("kokoro-lab bench profile", r"Conv", f"kokoro-lab bench profile {SHORT}", slow=True),
    Line("kokoro-lab bench text --memory", r"cpu_ms", "kokoro-lab bench text", slow=True),
    Line(
        "kokoro-lab export --variant int8 --format ort -o graphs",
        r"",
        "kokoro-lab export --variant int8 --format ort -o graphs --texts 1 --voices af_heart",
        leaves="graphs/manifest.json",
        slow=True,
    ),
    Line(
        'KOKORO_STAGES=graphs KOKORO_VARIANT=int8 kokoro-lab speak "Hello there."',
        r"speech",
        "kokoro-lab export --variant int8 --format onnx -o graphs --texts 1 --voices af_heart && "
        'KOKORO_STAGES=graphs KOKORO_VARIANT=int8 kokoro-lab speak "Hello there."',
        leaves="speech.wav",
        slow=True,
    ),
    Line(
        "kokoro-lab export --format mlpackage --texts 1 -o coreml",
        r"",
        leaves="coreml/manifest.json",
        slow=True,
    ),
    Line("kokoro-lab export", tested_by="tests/lab/conversion/test_exports.py"),
    Line("kokoro-lab run 30_loudness_gate", tested_by="tests/lab/test_suite_runs.py"),
    Line(
        "kokoro-lab run 40_streaming_chunks --sweep voice=af_heart,bm_george --sweep texts=6,12",
        r"voice",
        "kokoro-lab run 40_streaming_chunks --sweep voice=af_heart,bm_george -p texts=2",
        slow=True,
        exit_codes=(0, 1),
    ),
    Line(
        "kokoro-lab run 30_loudness_gate --sweep voices=af_heart,bf_emma,jf_alpha --cluster tcp://127.0.0.1:8786",
        tested_by="tests/lab/test_sweeps.py",
    ),
    Line("kokoro-lab run gates --fast", tested_by="tests/lab/test_suite_runs.py"),
    Line("kokoro-lab run gates", tested_by="tests/lab/test_suite_runs.py"),
    Line("kokoro-lab run checklist", tested_by="tests/lab/gates/test_checklist.py"),
    Line("kokoro-lab run 60_performance_gate -p write=true", tested_by="tests/lab/gates/test_performance.py"),
    Line("kokoro-lab run 91_upgrade_playbook", tested_by="tests/lab/gates/test_upgrade.py"),
    Line(
        'kokoro-lab run 10_provider_ab -p "configurations=threads=1; provider=coreml"',
        tested_by="tests/lab/compare/test_comparison.py",
    ),
    Line("kokoro-lab run 10_provider_ab", tested_by="tests/lab/compare/test_comparison.py"),
    Line("kokoro-lab listen --serve --listeners 10", tested_by="tests/installed/test_listen.py"),
    Line("kokoro-lab listen", tested_by="tests/installed/test_listen.py"),
    Line("kokoro-lab run 20_quantization_abx", tested_by="tests/lab/gates/test_abx.py"),
    Line(
        "kokoro-lab run 90_verification_checklist -p complete=true",
        tested_by="tests/lab/gates/test_checklist.py",
    ),
    Line("kokoro-lab results list", tested_by="tests/lab/results/test_command.py"),
    Line("kokoro-lab results open 30 --sound", tested_by="tests/installed/test_results.py"),
    Line("kokoro-lab results show 30", tested_by="tests/lab/results/test_command.py"),
    Line("kokoro-lab results compare 30~1 30", tested_by="tests/lab/results/test_command.py"),
    Line("kokoro-lab results prune --keep 5", tested_by="tests/lab/results/test_command.py"),
    Line("kokoro-lab results export -o all.csv", tested_by="tests/lab/results/test_command.py"),
    Line("kokoro-lab tune", tested_by="tests/lab/tuning/test_autotune.py"),
    Line("kokoro-lab tune --dry-run", tested_by="tests/lab/tuning/test_autotune.py"),
    Line(
        "kokoro-lab tune --try threads=4,8 --try spinning=false --trials 20",
        r"trial|configuration",
        # Two texts: a study of its own, while the tuner's tests have theirs of one
        "kokoro-lab tune --dry-run --try threads=1,2 --trials 2 --texts 2 --compared 3 --rounds 0 "
        "--preset short",
        slow=True,
        exit_codes=(0, 1),
    ),
)
BY_TEXT = {line.written: line for line in LINES}


def as_written(command: str) -> str:
    """Without the script's folder, the remark behind it, and the line ends that prose has."""
    command = re.sub(r"\s+#\s.*$", "", command).replace(".venv/bin/kokoro-lab", "kokoro-lab")
    return " ".join(command.split())


def commands_of(page: str) -> set[str]:
    """The commands of a page that run `kokoro-lab`: of its blocks of code, and between its backticks."""
    blocks = re.findall(r"```\w*\n(.*?)```", page, re.DOTALL)
    prose = re.sub(r"```\w*\n.*?```", "", page, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = re.findall(r"`([^`]+)`", prose)
    starts = re.compile(r"^(?:\w+=\S+ |(?:echo|cat) .*\| )*kokoro-lab(?: |$)")
    return {
        found for found in map(as_written, lines + spans) if starts.match(found) and found != "kokoro-lab"
    }


def test_every_command_of_the_pages_has_a_line_here() -> None:
    written = set().union(*(commands_of(page.read_text("utf-8")) for page in PAGES))
    assert len(written) > 40
    assert sorted(written - BY_TEXT.keys()) == []
    assert sorted(BY_TEXT.keys() - written) == []


def test_a_command_that_is_tested_elsewhere_is_tested_there() -> None:
    for line in LINES:
        assert bool(line.tested_by) != bool(line.says or line.smaller or line.leaves), line.written
        if line.tested_by:
            assert (ROOT / line.tested_by).is_file(), line.written


def test_commands_are_found_in_blocks_and_in_prose() -> None:
    page = "`kokoro-lab\ntext`, `kokoro_lab`, `KOKORO_A=b kokoro-lab serve`.\n```\nkokoro-lab a  # b\nls\n```"
    assert commands_of(page) == {"kokoro-lab text", "KOKORO_A=b kokoro-lab serve", "kokoro-lab a"}


@pytest.fixture
def prepared(installed: Installed) -> Installed:
    """A folder with the files that the pages take for granted, and a player that keeps what it is given."""
    folder = installed.folder
    (folder / "article.txt").write_text("The kettle is on. The window is open.")
    (folder / "answer.md").write_text("## Kettles\n\n- *boil*\n- **whistle**\n\n```python\nboil()\n```\n")
    (folder / "words.tsv").write_text("lang\tgrapheme\tphoneme\nen\tnginx\tˈɛnʤən ˈɛks\n")
    with wave.open(str(folder / "hello.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(24_000)
        file.writeframes(bytes(2 * 12_000))
    player = folder / "bin" / "aplay"
    player.parent.mkdir()
    player.write_text(
        f'#!/bin/sh\nfor last; do :; done\ncat -- "$last" > {shlex.quote(str(folder / "played"))}\n'
    )
    player.chmod(0o755)
    return installed


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=[pytest.mark.test_all] if line.slow else [], id=line.written)
        for line in LINES
        if not line.tested_by
    ],
)
def test_it_does_what_the_page_says(line: Line, prepared: Installed) -> None:
    folder = prepared.folder
    command = re.sub(r"(?<![\w-])kokoro-lab(?= )", shlex.quote(str(SCRIPT)), line.smaller or line.written)
    done = prepared.shell(command, timeout_s=600, PATH=f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin")
    output = done.stdout + done.stderr
    assert done.returncode in line.exit_codes, output
    assert re.search(line.says, output, re.DOTALL), output
    assert "Traceback" not in output
    if line.leaves:
        assert (folder / line.leaves).stat().st_size > 0
