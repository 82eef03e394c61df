"""Reads LaTeX of school level. A sign that `signs.tsv` has no words for is read by its letters."""

from __future__ import annotations

from functools import cache

import regex

from kokoro_lab.text.normalise import reader
from kokoro_lab.text.tables import entries, names, rows, words

_TOKEN = regex.compile(r"\\[A-Za-z]+|\\.|\d+(?:[.,]\d+)*|\s+|.", regex.DOTALL)
_WHOLE_NUMBER = regex.compile(r"(?<![\d.,$#])\d{1,15}(?![.,]?\d)", regex.ASCII)
_SIMPLE_FRACTION = regex.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_COMMAND = regex.compile(r"\\[A-Za-z]+|\\.|[{}$&^_]")
_WORDS = words(__package__)
_SETS_ONLY = _WORDS["LaTeX that changes how a formula looks"]
_WRITTEN = _WORDS["LaTeX of words"]
_STRUCTURE = _WORDS["LaTeX with a shape of its own"]
_ESCAPED = (r"\$", r"\&", r"\#")
"""Signs of ordinary text, which would be LaTeX without their backslash."""
_FUNCTIONS = frozenset((*"fghPEFGO", "Theta", "Omega"))
"""Letters that are functions before a bracket: `f(x)`, but not `x(y + 1)`."""
_OPERATORS = ("+", "-", "=", r"\pm", r"\times", "<", ">", r"\le", r"\ge")
_COMPOSED = {"{,}": ",", r"\not=": r"\ne ", r"\not\in": r"\notin"}
"""Sign that is written as several tokens → a single token with the same meaning."""
_CLOSES = names(__package__)["closing sign of LaTeX"]
"""Signs that open a pair → the sign that closes it."""
_MOST_ORDINAL = 20
"""The largest denominator that is read as an ordinal: `3/20` is "three twentieths", `3/21` "three over
twenty-one"."""
_DEEPEST = 24


@cache
def _signs(language: str) -> dict[str, str]:
    """Sign → its words; empty if the language has no column."""
    table = rows(__package__, "signs.tsv")
    return {each: row[language] for row in table if row.get(language) for each in entries(row["written"])}


def said(latex: str, language: str) -> str | None:
    """A formula in words.

    Parameters
    ----------
    latex : str
        The LaTeX between the dollar signs.
    language : str
        A canonical tag.

    Returns
    -------
    str or None
        The words; None if there are no words for formulas in that language.
    """
    signs = _signs(language.split("-")[0])
    speaker = reader(language)
    if not signs or speaker is None:
        return None
    found = regex.sub(
        r" (?=[,.;:?])|(?<=[$#]) (?=\d)", "", " ".join(_Formula(latex, language, signs).words())
    )
    # Before `2 m` can be taken for metres
    return str(_WHOLE_NUMBER.sub(lambda number: speaker.cardinal(int(number.group())), found))


def bare(latex: str) -> str:
    """A formula as plain text, without layout commands: its letters, digits and ordinary signs."""
    plain = _SIMPLE_FRACTION.sub(r"\1/\2", latex)
    return " ".join(_COMMAND.sub(lambda found: _ordinary_sign(found.group()), plain).split())


def _ordinary_sign(command: str) -> str:
    """If there is an ordinary sign for `command`: that sign. If not: the command's name, or a space if its
    name is not to be read."""
    unread = command in _SETS_ONLY | _WRITTEN | _STRUCTURE or not command[-1].isalnum()
    return _ordinary_signs().get(command, " " if unread else f" {command[1:]} ")


@cache
def _ordinary_signs() -> dict[str, str]:
    table = [entries(row["written"]) for row in rows(__package__, "signs.tsv")]
    escaped = {each: each[1:] for each in _ESCAPED}
    return escaped | {each: signs[-1] for signs in table for each in signs if len(signs[-1]) == 1}


class _Formula:
    """Reads the tokens of a formula from left to right; each method takes those that it needs."""

    def __init__(self, latex: str, language: str, signs: dict[str, str]) -> None:
        for written, sign in _COMPOSED.items():
            latex = latex.replace(written, sign)
        self._tokens = _TOKEN.findall(latex)
        self._at = 0
        self._language = language
        self._signs = signs
        self._depth = 0

    def words(self, until: str = "") -> list[str]:
        """The words of the next tokens, up to the token `until` or the end of the formula. `until` is taken
        as well."""
        found: list[str] = []
        self._depth += 1
        while (token := self._next()) and token != until:
            found += self._said(token, found)
        self._depth -= 1
        return found

    def _next(self) -> str:
        token = self._peek()
        self._at += bool(token)
        return token

    def _peek(self) -> str:
        while self._at < len(self._tokens) and self._tokens[self._at].isspace():
            self._at += 1
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _argument(self) -> list[str]:
        """The words of the next token or group. A group nested too deeply is read as if it had no braces."""
        if self._depth >= _DEEPEST or not self._peek():
            return []
        self._depth += 1
        found = self._said(self._next(), [])
        self._depth -= 1
        return found

    def _raw(self) -> str:
        """The text of the next group, as written."""
        start, open_groups = self._at, 0
        while token := self._next():
            open_groups += (token == "{") - (token == "}")
            if open_groups <= 0:
                break
        return "".join(self._tokens[start : self._at]).strip(" {}")

    def _said(self, token: str, before: list[str]) -> list[str]:
        match token:
            case "{":
                return self.words("}") if self._depth < _DEEPEST else []
            case "^":
                return self._power()
            case "_":
                index = self._argument()
                if before[-1:] == [self._signs[r"\log"]]:
                    return [self._signs["base"], *index, self._signs["of"]]
                return index if "".join(index).isdecimal() else [self._signs["index"], *index]
            case r"\frac" | r"\dfrac" | r"\tfrac":
                return self._fraction()
            case r"\sqrt":
                return self._root()
            case r"\sum" | r"\prod" | r"\int" | r"\iint" | r"\oint" | r"\lim" | r"\bigcup" | r"\bigcap":
                return self._with_limits(token)
            case r"\begin" | r"\end":
                if self._peek() == "{":
                    self._raw()
                return []
            case r"\\":
                return [","] if before else []
            case "(" if self._depth < _DEEPEST:
                return self._bracket(before)
            case "|" | r"\mid" | r"\lvert" | r"\rvert":
                return self._bar(token, before)
            case _ if token in _CLOSES:
                return self._enclosed(token)
            case r"\binom" | r"\dbinom" | r"\tbinom":
                above, below = self._argument(), self._argument()
                return [*above, self._signs[r"\binom"], *below]
        if token in _WRITTEN:
            return bare(self._raw()).split()
        if token in _SETS_ONLY:
            if token in (r"\left", r"\right") and self._peek() == ".":
                self._next()
            return []
        return self._plain(token)

    def _plain(self, token: str) -> list[str]:
        if token in self._signs:
            return [self._signs[token]]
        keeps = token[-1].isalnum() or token in ",.:;?()[]" or token in _ESCAPED
        return [token.lstrip("\\")] if keeps else []

    def _power(self) -> list[str]:
        power = self._argument()
        if power in (["2"], ["3"]):
            return [self._signs["squared" if power == ["2"] else "cubed"]]
        if power in ([self._signs[r"\circ"]], [self._signs["'"]], [self._signs[r"\top"]]):
            return power
        return [self._signs["power"], *power]

    def _fraction(self) -> list[str]:
        if self._peek().isdecimal() and len(self._peek()) == 2:
            self._tokens[self._at : self._at + 1] = self._peek()  # `\frac12`: two digits
        above, below = self._argument(), self._argument()
        if self._language.startswith("en") and (parts := _parts(above, below)):
            return parts
        if not {self._signs[each] for each in _OPERATORS}.isdisjoint(above):
            return [*above, ",", self._signs["all over"], *below]
        return [*above, self._signs["over"], *below]

    def _root(self) -> list[str]:
        index: list[str] = []
        if self._peek() == "[":
            self._next()
            index = self.words("]")
        if index in ([], ["2"], ["3"]):
            opening = self._signs["cube root" if index == ["3"] else "square root"]
        else:
            opening = self._signs["root"].format(" ".join(index))
        return [opening, *self._argument()]

    def _with_limits(self, token: str) -> list[str]:
        """A sum, product, integral or limit, with the expression after it."""
        found = [self._signs[token]]
        while self._peek() in ("_", "^"):
            if token == r"\lim":
                self._next()
                to = self._signs[r"\to"]
                found += [self._signs["approaches"] if word == to else word for word in self._argument()]
            else:
                found += [self._signs["from" if self._next() == "_" else "up to"], *self._argument()]
        return [*found, self._signs["of"]]

    def _bracket(self, before: list[str]) -> list[str]:
        function = bool(before) and before[-1] in _FUNCTIONS
        inside = self.words(")")
        return [self._signs["of"], *inside] if function else ["(" + " ".join(inside) + ")"]

    def _bar(self, token: str, before: list[str]) -> list[str]:
        if token == r"\mid" or (self._depth > 1 and before):
            return [self._signs["given"]]
        inside = self.words(r"\rvert" if token == r"\lvert" else "|") if self._depth < _DEEPEST else []
        return [self._signs["absolute"], *inside] if inside else []

    def _enclosed(self, token: str) -> list[str]:
        """The words for a pair of signs, such as those of a norm, a floor or a ceiling, and for what is
        between them."""
        inside = self.words(_CLOSES[token]) if self._depth < _DEEPEST else []
        return [*filter(None, (self._signs.get(token),)), *inside]


def _parts(above: list[str], below: list[str]) -> list[str] | None:
    """If `above` and `below` are whole numbers, and `below` is small: `3/4` as three quarters, in English;
    else None."""
    count, parts = "".join(above), "".join(below)
    speaker = reader("en-us")
    if not (speaker and count.isdecimal() and parts.isdecimal() and 1 < int(parts) <= _MOST_ORDINAL):
        return None
    one = {2: "half", 4: "quarter"}.get(int(parts)) or speaker.ordinal(int(parts))
    many = "halves" if one == "half" else one + "s"
    return [count, one if int(count) == 1 else many]
