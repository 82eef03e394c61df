"""`completion`: prints a shell's set-up for the Tab key; the rest of the module finds what Tab offers.

Click starts a process at each press of the key, so this module imports nothing that loads slowly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from kokoro_lab.config import VARIANTS
from kokoro_lab.errors import KokoroLabError

PROGRAM, VARIABLE = "kokoro-lab", "_KOKORO_LAB_COMPLETE"
SETUP = {
    "bash": 'Put this line into ~/.bashrc:  eval "$({command} completion bash)"',
    "zsh": 'Put this line into ~/.zshrc, behind compinit:  eval "$({command} completion zsh)"',
    "fish": "Put this line into ~/.config/fish/config.fish:  {command} completion fish | source",
}
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command()
@click.argument("shell", type=click.Choice(list(SETUP)))
def completion(shell: str) -> None:
    """Print what makes the Tab key complete commands, notebooks, their parameters, voices and languages."""
    root = click.get_current_context().find_root()
    click.echo(f"# {SETUP[shell].format(command=Path(sys.argv[0]).absolute())}")
    click.echo(SHELLS[shell](root.command, {}, PROGRAM, VARIABLE).source())


class _Bash(BashComplete):
    """Bash, which ends a word at `=`, and puts a space after a completed word."""

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)", "COMPREPLY+=($value)\n            [[ $value == *= ]] && compopt -o nospace"
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        arguments, incomplete = super().get_completion_args()
        *words, incomplete = _joined([*arguments, incomplete])
        return words, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type},{_behind_equals(item.value)}"


class _Zsh(ZshComplete):
    """Zsh, which puts a space after a completed word, and only finds commands in `PATH`."""

    source_template = (
        ZshComplete.source_template.replace("    (( ! $+commands[%(prog_name)s] )) && return 1\n", "")
        .replace("zsh_complete %(prog_name)s)", "zsh_complete $words[1])")
        .replace(
            'completions+=("$key")', '[[ $key == *= ]] && compadd -U -S "" -- "$key" || completions+=("$key")'
        )
    )


def _joined(words: Sequence[str]) -> list[str]:
    """The words of a line, with those joined that Bash has divided at a `=`."""
    found: list[str] = []
    for word in words:
        if found and (word == "=" or found[-1].endswith("=")):
            found[-1] += word
        else:
            found.append(word)
    return found


def _behind_equals(value: str) -> str:
    """The text that Bash inserts for a completion: the part after the `=`."""
    before, _, behind = value.rpartition("=")
    return behind if before and behind else value


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": FishComplete}
for _shell in SHELLS.values():
    add_completion_class(_shell)


def offering(choices: Callable[[], Iterable[str]], between: str = "") -> Complete:
    """A function for Click that completes a word that is being typed to one of those that `choices` returns.
    If `between` is given, the word may be a list whose parts are separated by one of these characters, such
    as `+` in a blend of voices. Then its last part is completed."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _that_begin(choices, incomplete, between)

    return complete


def _that_begin(choices: Callable[[], Iterable[str]], incomplete: str, between: str) -> list[CompletionItem]:
    at = max((incomplete.rfind(sign) + 1 for sign in between), default=0)
    there, begun = incomplete[:at], incomplete[at:]
    with suppress(KokoroLabError):  # such as outside a checkout
        return [CompletionItem(there + choice) for choice in choices() if choice.startswith(begun)]
    return []


def voices() -> Iterable[str]:
    from kokoro_lab.weights.store import voice_names

    return voice_names()


def languages() -> Iterable[str]:
    from kokoro_lab.text.language import SPOKEN

    return SPOKEN


def notebooks() -> Iterable[str]:
    from kokoro_lab.lab.notebooks import notebook_names

    return ("gates", "checklist", *notebook_names())


def parameters(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What Tab offers for a parameter of the notebook that is named on the line: its name as `name=` and,
    after the `=`, its values where the name or the type tells which there are (voices, variants, languages,
    true and false)."""
    name, equals, _ = incomplete.partition("=")
    values: dict[str, Callable[[], Iterable[str]]] = {"voice": voices, "variant": lambda: VARIANTS}
    values["language"] = languages

    def names() -> Iterable[str]:
        return (f"{declared}=" for declared in _declared(context))

    def choices() -> Iterable[str]:
        if _declared(context).get(name, {}).get("type") == "bool":
            return ("true", "false")
        return values.get(name.removesuffix("s"), tuple)()

    return _that_begin(choices, incomplete, "=,+") if equals else _that_begin(names, incomplete, "")


def _declared(context: click.Context) -> dict[str, dict[str, str]]:
    from kokoro_lab.lab.notebooks import OWN_PARAMETERS, declared_parameters, find_notebook

    # While an option lacks its value, Click passes the earlier words on as they are
    notebook = context.params.get("notebook") or next(iter(context.args), "")
    declared = declared_parameters(find_notebook(notebook))
    return {name: about for name, about in declared.items() if name not in OWN_PARAMETERS}
