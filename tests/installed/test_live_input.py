"""`speak -i -`: what a program writes into a pipe is spoken as it comes."""

from __future__ import annotations

import signal
import subprocess

from tests.installed.command import READY_S, Installed, clean_environment

TEXT = "The kettle is on. The window is open, and nobody knows why. Ünïted"


def test_it_is_the_speech_of_the_whole_text_and_is_passed_on(installed: Installed) -> None:
    whole = installed.run("speak", TEXT, "--stream", "-o", "whole.wav")
    assert whole.returncode == 0, whole.stderr
    # One byte at a time, so that letters come in halves
    line = f"for byte in $(printf '%s' '{TEXT}' | od -An -v -tx1); do printf \"\\\\x$byte\"; done"
    command = f"{line} | {installed.script} speak -i - --tee -o live.wav > passed_on"
    done = installed.shell(command)
    assert done.returncode == 0, done.stderr
    assert (installed.folder / "passed_on").read_text() == TEXT
    assert (installed.folder / "live.wav").read_bytes() == (installed.folder / "whole.wav").read_bytes()
    assert "live text" in done.stderr


def test_markdown_is_spoken_as_it_comes(installed: Installed) -> None:
    text = "# Kettles\n\nA kettle **boils** water.\n\n- Fill it.\n- Wait.\n"
    (installed.folder / "answer.md").write_text(text)
    options = "--input-format markdown"
    whole = installed.run("speak", "-i", "answer.md", "--stream", *options.split(), "-o", "whole.wav")
    assert whole.returncode == 0, whole.stderr
    live = installed.shell(f"cat answer.md | {installed.script} speak -i - {options} -o live.wav")
    assert live.returncode == 0, live.stderr
    assert (installed.folder / "live.wav").read_bytes() == (installed.folder / "whole.wav").read_bytes()


def test_an_interruption_ends_it_though_the_writer_goes_on(installed: Installed) -> None:
    command = [str(installed.script), "speak", "-i", "-", "-o", "live.wav", "--tee"]
    speaking = subprocess.Popen(
        command,
        cwd=installed.folder,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert speaking.stdin is not None
    assert speaking.stdout is not None
    speaking.stdin.write("The kettle is on.\n\nThe ")
    speaking.stdin.flush()
    assert speaking.stdout.readline() == "The kettle is on.\n"  # what it was written is passed on: it reads
    speaking.send_signal(signal.SIGINT)
    _, said = speaking.communicate(timeout=READY_S)
    assert speaking.returncode not in (0, -signal.SIGABRT)
    assert "Traceback" not in said
    assert "terminate called" not in said


def test_bytes_that_are_no_text_are_refused(installed: Installed) -> None:
    done = installed.shell(f"printf 'The kettle \\xff is on.' | {installed.script} speak -i - -o live.wav")
    assert done.returncode == 2
    assert "Error: The input is not UTF-8." in done.stderr


def test_only_what_is_written_live_is_passed_on(installed: Installed) -> None:
    done = installed.run("speak", TEXT, "--tee")
    assert done.returncode == 2
    assert "Add -i -." in done.stderr
