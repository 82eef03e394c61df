"""What the Tab key offers, asked for as the scripts for bash do (`tests/installed` has real shells)."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from kokoro_lab.__main__ import main
from kokoro_lab.errors import ParameterError


def asked(*words: str) -> list[str]:
    told = {
        "_KOKORO_LAB_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["kokoro-lab", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = CliRunner().invoke(main, [], env=told, prog_name="kokoro-lab")
    assert done.exit_code == 0, done.output
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("run", "g"), ["gates"]),
        (("run", "30", "-p", ""), ["voices=", "texts=", "blends=", "speeds=", "speeds_voices=", "corpus="]),
        (("run", "40_streaming_chunks", "--fast", "--sweep", "vo"), ["voice="]),
        # bash makes three words of it, and puts in what is behind the sign
        (("run", "40", "--sweep", "voice", "=", "am_a"), ["am_adam"]),
        (("run", "30", "-p", "voices", "=", "am_adam,bf_e"), ["am_adam,bf_emma"]),
        (("run", "41", "-p", "misbehave", "="), ["true", "false"]),
        (("run", "41", "-p", "minutes", "="), []),
        (("run", "no-such-notebook", "-p", ""), []),
        (("speak", "Yes.", "--voice", "jm_"), ["jm_kumo"]),
        (("speak", "Yes.", "--voice", "af_bella+jm_"), ["af_bella+jm_kumo"]),
        (("speak", "--language", "pt"), ["pt-br"]),
        (("text", "--language", "en"), ["en-us", "en-gb"]),
        (("serve", "--variant", "int8f"), ["int8fp16mix"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
)
def test_what_can_be_chosen_is_offered(words: tuple[str, ...], offered: list[str]) -> None:
    assert asked(*words) == offered


def test_where_there_is_no_checkout_nothing_is_offered_and_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere() -> None:
        raise ParameterError("This needs the repository.")

    monkeypatch.setattr("kokoro_lab.lab.notebooks.repository_root", nowhere)
    assert asked("run", "50") == asked("run", "50", "-p", "") == []
