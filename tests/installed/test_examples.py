"""Every block of code of README.md, docs/ and CONTRIBUTING.md is run, or `EXAMPLES` says why it is not."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx2
import pytest
from distributed import Client

from kokoro_lab.lab.listening import open_session
from kokoro_lab.lab.listening.view import ListeningView
from kokoro_lab.server.requests.speech_request import ALIASES, SpeechRequest
from tests.documentation import ROOT, Block, all_pages, block, blocks_of, page
from tests.installed.command import READY_S, Installed, Served, clean_environment
from tests.installed.test_readme_commands import BY_TEXT, as_written
from tests.lab.listening.tones import pairs

NOT_RUN = "not run: "
EXAMPLES = {
    # Commands of the shell, by how they begin. Those of `kokoro-lab` stand in test_readme_commands.py.
    "$ curl -sN": "tests/clients/test_readme.py::test_curl_hands_a_stream_to_a_player",
    "$ curl -sf": "tests/installed/test_openai_sdk.py::test_curl",
    "$ curl http": "tests/clients/test_readme.py::test_curl_writes_a_file",
    "$ dask scheduler": "test_a_cluster_has_four_workers",
    "$ docker": "not run: needs a daemon; tests/installed/test_container.py does what the Containerfile says",
    "$ export OPENAI_": "tests/installed/test_openai_sdk.py::test_two_variables_are_enough",
    "$ haproxy": "tests/server/test_balancer.py::test_no_word_is_lost_behind_a_balancer",
    "$ make demo": "tests/test_checkout.py::test_its_demonstration_speaks",
    "$ make golden": "tests/lab/gates/test_golden_speaking.py::test_the_command_lists_and_changes_nothing",
    "$ make lab": "tests/test_checkout.py::test_the_index_speaks_and_leads_on_and_is_no_change",
    "$ make release-check": (
        "tests/test_release.py::test_the_installed_wheel_does_its_work_far_from_the_checkout"
    ),
    "$ make site": "tests/test_site.py::test_each_page_is_in_the_site_and_in_its_contents",
    "$ make site-runs": "not run: 15 minutes; `make test-all` runs each notebook",
    "$ make test": "not run: it runs these tests",
    "$ pip install kokoro-lab": "tests/installed/test_base.py::test_it_speaks_in_every_format",
    "$ python3 -m venv piper": "not run: fetches a peer; tests/lab/bench/test_peers.py has one that hums",
    "$ .venv/bin/python scripts/wheels": "not run: needs Zig; tests/native/test_prebuilt.py compares bits",
    # All else, by what a block holds; tests without a file are in this one
    "engine.": "test_python_speaks",
    "ListeningView(": "test_a_listening_test_is_shown_in_a_notebook",
    "[pause:1.5s]": "test_inline_marks_are_followed",
    "lang\tgrapheme": "test_the_lexicon_is_read",
    "speech.audio.words": "test_events_have_what_is_shown",
    "in the order of the picture": "test_the_tree_is_the_one_that_is_shown",
    "commands → serve": "test_the_layers_are_those_that_are_checked",
    "text ──▶ sentences": "not run: a picture",
    "with client.audio": "tests/clients/test_readme.py::test_python_hears_it_as_it_is_spoken",
    "events.mp3": "tests/installed/test_openai_sdk.py::test_python",
    "hello.mp3": "tests/installed/test_openai_sdk.py::test_python",
    "elevenlabs.TTS(": (
        "tests/clients/test_live_text.py::"
        "test_livekit_speaks_two_texts_over_one_connection_and_knows_their_words"
    ),
    "[Service]": (
        "tests/installed/test_service.py::test_systemd_finds_nothing_wrong_with_the_unit_for_home_assistant"
    ),
    "for await": "tests/clients/test_readme.py::test_node_writes_a_file",
    "node.mp3": "tests/installed/test_openai_sdk.py::test_node",
}
SHELL = ("", "sh", "bash")


def commands_of(block: Block) -> list[str]:
    return [each for each in map(as_written, block.text.replace("\\\n", " ").splitlines()) if each]


def rows_of(block: Block) -> set[str]:
    """The rows of `EXAMPLES` for a block.

    Raises
    ------
    AssertionError
        There is none for it, or for one of its commands.
    """
    found = {row for row in EXAMPLES if row in block.text}
    if found:
        return found
    assert block.language in SHELL, f"EXAMPLES has no row for {block.text}"
    for command in commands_of(block):
        begins = {row for row in EXAMPLES if row.startswith("$ ") and command.startswith(row[2:])}
        assert begins or command in BY_TEXT, f"EXAMPLES has no row for {command}"
        found |= begins
    return found


def test_each_block_has_a_row_and_each_row_a_block() -> None:
    blocks = blocks_of(all_pages())
    assert len(blocks) > 30
    assert set().union(*map(rows_of, blocks)) == EXAMPLES.keys()


@pytest.mark.parametrize(
    "new",
    [
        Block("", "kokoro-lab serve\nbrew install it\n"),
        Block("", "kokoro-lab sing\n"),
        Block("yaml", "a: 1\n"),
    ],
)
def test_a_block_without_a_row_is_refused(new: Block) -> None:
    with pytest.raises(AssertionError, match=r"no row for (brew|kokoro-lab sing|a: 1)"):
        rows_of(new)


def test_what_runs_a_block_is_a_test() -> None:
    for row, told in EXAMPLES.items():
        if not told.startswith(NOT_RUN):
            file, _, name = told.rpartition("::")
            assert f"def {name}(" in (page(file) if file else Path(__file__).read_text("utf-8")), row


def test_json_is_json_and_fields_of_requests_are_taken() -> None:
    written = [each.text for each in blocks_of(all_pages()) if each.language == "json"]
    written += [f"{{{each}}}" for each in re.findall(r'`("\w+": [^`…]+)`', all_pages())]
    assert len(written) > 10
    for fields in map(json.loads, written):
        if fields.keys() <= SpeechRequest.model_fields.keys() | ALIASES.keys():
            SpeechRequest.model_validate({"input": "Hello.", **fields})


def test_python_speaks(installed: Installed) -> None:
    """One block behind the other, as somebody types them who reads on."""
    program = "\n".join(each.text for each in blocks_of(all_pages()) if "engine." in each.text)
    done = subprocess.run(
        [sys.executable, "-"],
        cwd=installed.folder,
        env=clean_environment(),
        input=program,
        capture_output=True,
        text=True,
        timeout=READY_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (installed.folder / "hello.mp3").stat().st_size > 5000


def test_a_listening_test_is_shown_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_session("fp32-int8", pairs(2))
    imports, _, shown = block("ListeningView(").partition("\n\n")
    names: dict[str, object] = {}
    exec(imports, names)
    view = eval(shown, names)
    assert isinstance(view, ListeningView)
    try:
        assert httpx2.get(view.url).status_code == 200
    finally:
        view.close()


def test_inline_marks_are_followed(served: Served) -> None:
    text = block("[pause:1.5s]")
    answer = served.speak(text, input_format="marked", stream=False)
    assert answer.status_code == 200
    assert "X-Kokoro-Fallbacks" not in answer.headers
    plain = served.speak(re.sub(r"\(/.*?/\)|\[\w+:.*?\]|[\[\]]", "", text), stream=False)
    assert len(answer.content) - len(plain.content) > 1.2 * 48_000


def test_the_lexicon_is_read(installed: Installed) -> None:
    text = block("lang\tgrapheme")
    (installed.folder / "words.tsv").write_text(text)
    for language, _, phonemes, _ in (line.split("\t") for line in text.splitlines()[1:]):
        command = f"echo 'Two GPUs.' | {installed.script} text --lexicon words.tsv --language {language}"
        done = installed.shell(command)
        assert f"{phonemes}z" in done.stdout, done.stderr


def test_events_have_what_is_shown(served: Served) -> None:
    shown = block("speech.audio.words")
    answer = served.speak("Hello there.", stream_format="sse", timestamps=True)
    comment, number, *_ = answer.text.splitlines()
    assert comment == f": {answer.headers['X-Kokoro-Stream-Id']}"
    assert number in shown
    events = [json.loads(line) for line in re.findall(r"^data: (\{.*)", answer.text, re.MULTILINE)]
    for kind, names in re.findall(r'^data: \{"type": "([\w.]+)"(.*)', shown, re.MULTILINE):
        keys = {key for event in events if event["type"] == kind for key in keys_of(event)}
        assert set(re.findall(r'"(\w+)"', names)) <= keys


def keys_of(value: object) -> set[str]:
    """The names of an object of JSON, and of all objects in it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set(value if isinstance(value, dict) else ()).union(*map(keys_of, inner))


@pytest.mark.test_all
def test_a_cluster_has_four_workers(installed: Installed) -> None:
    (line,) = [each for each in commands_of(Block("", block("dask scheduler"))) if "dask" in each]
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    here = line.removesuffix("&").replace("8786", port).split(" & ")
    here[0] += f" --port {port} --no-dashboard"
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    started = [
        subprocess.Popen(shlex.split(each), cwd=installed.folder, env=clean_environment(PATH=path))
        for each in here
    ]
    try:
        with Client(f"tcp://127.0.0.1:{port}", timeout=60, set_as_default=False) as client:
            client.wait_for_workers(4, timeout=60)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def test_the_layers_are_those_that_are_checked() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    checked = [set(re.findall(r"\w+", layer)) - {"_version"} for layer in contract["layers"]]
    written = [set(re.findall(r"\w+", layer)) for layer in block("commands → serve").split("→")]
    assert [{"__main__"}, *written] == checked


def test_the_tree_is_the_one_that_is_shown() -> None:
    inner: set[str] = set()
    for line in block("in the order of the picture").splitlines():
        names = re.findall(r"[\w]+", line[:19])
        folder = ROOT / "kokoro_lab" if line.startswith(" ") else ROOT
        assert names
        assert all((folder / name).is_dir() for name in names), line
        inner |= set(names) if line.startswith(" ") else set()
    assert inner == {path.parent.name for path in (ROOT / "kokoro_lab").glob("*/__init__.py")}
