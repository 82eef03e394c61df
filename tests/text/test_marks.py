"""Marks in a text that is not said to be Markdown are not spoken, and what only looks so stays."""

from __future__ import annotations

import pytest

from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.text.growing import ReadAhead
from kokoro_lab.text.marks import LEFT_OUT, unmarked
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.sentences import Sentences, sentences


def parts(written: str, language: str = "es") -> list[str]:
    return [
        part.text
        for sentence in sentences(sanitise(written).strip(), language)
        for part in unmarked(sentence.text, language, begins_line=sentence.begins_line).parts
    ]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Es **muy** *bueno* y ~~malo~~ ==claro==.", ["Es muy bueno y malo, claro."]),
        ("Cuesta ~~20 €~~ 15 €, no <s>9 €</s> <b>8 €</b>.", ["Cuesta 20 €, 15 €, no 9 €, 8 €."]),
        ("**Fin.** *Sigue.* Y _así._\n\nMás.", ["Fin.", "Sigue.", "Y así.", "Más."]),
        ("これは**重要**です。", ["これは重要です。"]),
        ("## Datos que importan\ntexto", ["Datos que importan", "texto"]),
        ("### 3 cosas", ["3 cosas"]),
        ("> Una cita\n> que sigue.\n\n>> Otra.", ["Una cita que sigue.", "Otra."]),
        ("Vea [la web](https://a.es/b_c) y ![un gato](g.png)[^1].", ["Vea la web y un gato."]),
        ("[^1]: La nota.", ["La nota."]),
        ("| Día | Hora |\n|---|:-:|\n| Lunes | 3 |", ["Día, Hora", "Lunes, 3"]),
        ("Día | Hora\n--- | :-:\nlunes | 3", ["Día | Hora", "lunes | 3"]),
        ("Uno\n***\nDos\n=====\nTres", ["Uno", "Dos", "Tres"]),
        ("┌───┐\n│ caja │\n└───┘", ["caja"]),
        ("```python\nx = 1\n```\nFin.", ["x = 1", "Fin."]),
        ("- [x] Hecho\n* Otro", ["Hecho", "Otro"]),
        ("<p>Uno <b>dos</b></p><br/>tres", ["Uno dos", "tres"]),
        ('<a href="https://a.es">Aquí</a> &amp; all&iacute; &lt; 5', ["Aquí & allí < 5"]),
        ("Sea $x^2 \\le 5$.", ["Sea x al cuadrado es menor o igual que cinco."]),
        ("$$\nx = 1\n$$\nFin.", ["x es igual a uno", "Fin."]),
        ("---", []),
        ('Vea [la guía][1].\n\n[1]: https://a.es/guia "Guía"\n[2]: <https://a.es>', ["Vea la guía."]),
        ("[![Licencia: MIT](https://a.es/x.svg)](LICENSE)\nTexto.", ["Licencia: MIT", "Texto."]),
        ("=== Historia ===\nTexto.", ["Historia", "Texto."]),
        ("x<sup>2</sup>, 10<sup>-3</sup> &amp;amp;lt; R&amp;amp;D", ["x², 10⁻³ < R&D"]),
        ("x^2^, 10^-3^ H~2~O, 2^nd^, 21^st^", ["x², 10⁻³ H₂O, 2nd, 21st"]),
        ("2^10^5, a^b^c, ~2~3, A~2~3", ["2^10^5, a^b^c, ~2~3, A~2~3"]),
    ],
)
def test_a_mark_is_not_read(written: str, read: list[str]) -> None:
    assert parts(written) == read


@pytest.mark.parametrize(
    "written",
    [
        "2 * 3 * 4, a*b*c, 2**8, 5*3*2",
        "a_b_c and snake_case, #1, C#, R&D, AT&T; 5 > 3, <3",
        "if a<b and c>d then f[i](j), [see](that), <name>",
        "Open C:\\Users\\_x\\*.txt, ~/a_b/_c_.txt or https://e.org/Foo_(bar)_baz_ now",
        "$5 and $10, $HOME/$USER, US$5, 5$",
        '"[^abc]+", [1], [1][2], [Applause][Music]',
        "a | b, x || y",
        "# of people",
        "ls *.txt *.md",
        "i<10, x<y>z, List<String>",
        "> 5 items",
        "- 5 degrees",
        "It─and our order",
        "[1]: see https://a.org for more",
        "arr[0][1] = f[g(x)](y), a == b",
        "x == y == z",
    ],
)
def test_what_only_looks_like_a_mark_stays(written: str) -> None:
    assert parts(written, "en-us") == [written]


def test_the_address_of_a_link_is_left_out_and_that_is_said(front_end: FrontEnd) -> None:
    found = front_end.describe("Vea [la web](https://a.es).", "es")
    assert [(each["reason"], each["start"], each["end"]) for each in found["fallbacks"]] == [
        (LEFT_OUT, 11, 26)
    ]
    assert [(word["text"], word["start"], word["end"]) for word in found["words"][:-1]] == [
        ("Vea", 0, 3),
        ("la", 5, 7),
        ("web", 8, 11),
    ]
    assert found["normalized"] == "Vea la web."


def test_an_opening_ends_in_front_of_a_link_that_it_would_cut(front_end: FrontEnd) -> None:
    for words in ("one", ", ".join(["a word"] * 9), " ".join(["word"] * 9)):
        written = f"{words} and [documents](https://example.org/{'x-' * 90}/docs), {words}."
        words_read = front_end.describe(written, "en-us")["words"]
        said = [word["text"] for word in words_read if word["text"].isalpha()]
        each = words.replace(",", "").split()
        assert said == [*each, "and", "documents", *each]
    cut = Sentences(ReadAhead(sanitise(f"Read [documents](https://example.org/{'x' * 90}).")), "en-us")
    assert cut.beginning(40).text == "Read"


def test_a_tag_that_ends_a_line_is_a_pause(front_end: FrontEnd) -> None:
    assert front_end.describe("Line one<br>Line two", "en-us")["phonemes"] == "lˈIn wˈʌn. lˈIn tˈu."


PAGE = """<style type="a">p {color: red}
b {c: d}</style>
<p>A line of a page that is long enough to be wrapped, without a full stop</p>
<SCRIPT>var a = "x < y. Z";
</SCRIPT><p>Hi</p>  <script src="a.js"></script>Bye"""


def test_scripts_and_styles_of_a_page_are_left_out_and_that_is_said() -> None:
    said, noted = [], []
    for each in sentences(sanitise(PAGE), "en-us"):
        found = unmarked(each.text, "en-us", begins_line=each.begins_line)
        said += [part.text for part in found.parts]
        noted += [(fallback.reason, PAGE[fallback.start : fallback.end]) for fallback in found.fallbacks]
    assert said == ["A line of a page that is long enough to be wrapped, without a full stop", "Hi", "Bye"]
    assert [reason for reason, _ in noted] == ["a style left out", "a script left out", "a script left out"]
    assert noted[1][1] == '<SCRIPT>var a = "x < y. Z";\n</SCRIPT>'


def test_a_script_that_is_written_about_is_read() -> None:
    assert parts("Use <script> and </script>.\n<script>\nOpen.", "en-us") == ["Use and .", "Open."]
