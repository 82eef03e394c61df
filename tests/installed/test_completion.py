"""The Tab key: what a shell asks for, as it asks for it, and in a real one."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.installed.command import SCRIPT, Installed, clean_environment

HEAVY = {"numpy", "pandas", "onnxruntime", "flask", "click.testing", "papermill"}


@pytest.fixture
def checkout(repository: Path) -> Installed:
    """The command in this checkout, whose notebooks and parameters it completes."""
    return Installed(repository)


def offered(command: Installed, *words: str, shell: str = "bash") -> list[str]:
    """What is offered for the last of these words, asked for as Click's scripts for the shells do."""
    line = ["kokoro-lab", *words]
    asked = {"bash": str(len(words)), "zsh": str(len(words)), "fish": words[-1]}[shell]
    told = {"_KOKORO_LAB_COMPLETE": f"{shell}_complete", "COMP_WORDS": " ".join(line), "COMP_CWORD": asked}
    done = command.run(**told)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    if shell == "zsh":
        return [lines[at + 1] for at in range(0, len(lines), 3)]
    return [line.partition(",")[2].partition("\t")[0] for line in lines if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_offered_notebooks(checkout: Installed, shell: str) -> None:
    assert offered(checkout, "run", "50", shell=shell) == ["50_autotune", "50_voice_levels"]


def test_it_is_quick(repository: Path) -> None:
    code = (
        "import sys; from kokoro_lab.__main__ import main\n"
        "try: main(prog_name='kokoro-lab')\n"
        "except SystemExit: print(*sys.modules)"
    )
    told = {"_KOKORO_LAB_COMPLETE": "bash_complete", "COMP_CWORD": "4"}
    for words in ("run 30 -p voices=am_", "speak x --voice am_"):
        environment = clean_environment(**told, COMP_WORDS=f"kokoro-lab {words}")
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "am_adam" in done.stdout
        assert not HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_needs_says_where_it_is_put(installed: Installed, shell: str) -> None:
    lines = installed.run("completion", shell).stdout.splitlines()
    assert lines[0].startswith("# Put this line into ~/.")
    assert f"{SCRIPT} completion {shell}" in lines[0]


def typed(shell: list[str], setup: str, line: str, awaited: str, folder: Path) -> str:
    """What a shell shows after a line is typed, until it shows what is awaited."""
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover  # it becomes the shell
        os.chdir(folder)
        os.execvpe(shell[0], shell, clean_environment(TERM="xterm", PS1="> "))
    shown = ""

    def until(text: str) -> None:
        nonlocal shown
        shown, deadline = "", time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < deadline, shown
            shown += os.read(terminal, 10_000).decode("utf-8", "replace")

    try:
        os.write(terminal, f"{setup}; echo se''t up\n".encode())
        until("set up")
        os.write(terminal, line.encode())
        until(awaited)
    finally:
        os.close(terminal)  # hangs up, which ends it
        os.waitpid(child, 0)
    return shown


BASH = (["bash", "--norc", "-i"], f'eval "$({SCRIPT} completion bash)"')
ZSH = (["zsh", "-f", "-i"], f'autoload -U compinit; compinit -D; eval "$({SCRIPT} completion zsh)"')


@pytest.mark.parametrize(("shell", "setup"), [BASH, ZSH], ids=["bash", "zsh"])
def test_a_shell_completes_a_parameter_and_then_its_value(
    repository: Path, shell: list[str], setup: str
) -> None:
    if not shutil.which(shell[0]):
        pytest.skip(f"{shell[0]} is not installed")
    # With a space behind the sign, the value would be a word of its own, and none would be offered
    typed(shell, setup, f"{SCRIPT} run 40 --sweep voi\tjm_\t", "voice=jm_kumo", repository)
