"""Numbers of Hindi, which num2words does not know: those below a hundred are words of their own."""

from __future__ import annotations

from kokoro_lab.text.tables import names

_NUMBERS, _SCALES, _ORDINALS = (
    {int(written): said for written, said in names(__package__, "hindi.tsv")[kind].items()}
    for kind in ("number", "scale", "ordinal")
)


def say(value: int) -> str:
    """In lakhs and crores, as everybody counts where Hindi is spoken."""
    for scale, name in _SCALES.items():
        if value >= scale:
            head = f"{say(value // scale)} {name}"
            return f"{head} {say(value % scale)}" if value % scale else head
    return _NUMBERS[value]


def rank(value: int) -> str:
    """The ordinal."""
    return _ORDINALS.get(value) or f"{say(value)}वाँ"
