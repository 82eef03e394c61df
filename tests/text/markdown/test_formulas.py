"""LaTeX of school level, in words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.text.markdown.formulas import bare, said


@pytest.mark.parametrize(
    ("latex", "words"),
    [
        ("E = mc^2", "E equals m c squared"),
        (r"\frac{1}{2} + \frac{3}{4}", "one half plus three quarters"),
        (r"\frac{2}{3}x", "two thirds x"),
        (r"\frac{d}{t}", "d over t"),
        (r"\frac{a+b}{2}", "a plus b, all over two"),
        (
            r"\sqrt{2}, \sqrt[3]{x}, \sqrt[n]{x}",
            "the square root of two, the cube root of x, the root of index n of x",
        ),
        (r"x_1 + x_{n+1}", "x one plus x sub n plus one"),
        (r"x^{-1}", "x to the power of minus one"),
        (r"\left( \frac{a}{b} \right)^3", "(a over b) cubed"),
        (r"\alpha \le \Omega \ne \infty", "alpha is less than or equal to Omega is not equal to infinity"),
        (r"\sum_{i=1}^{n} i^2", "the sum from i equals one to n of i squared"),
        (r"\lim_{x \to 0} f(x)", "the limit as x approaches zero of f of x"),
        (r"f: A \to B", "f: A to B"),
        (r"a \not= b \cong c \ll d", "a is not equal to b is congruent to c is much less than d"),
        (r"x \not\in A \supseteq B, x \mapsto y", "x not in A is a superset of B, x maps to y"),
        (r"|x - 1| < 3", "the absolute value of x minus one is less than three"),
        (r"P(A \mid B)", "P of A given B"),
        (r"\text{speed} = 5 \, \mathrm{m/s}", "speed equals five m/s"),
        (r"30^\circ, 5\%, n!, f'", "thirty degrees, five percent, n factorial, f prime"),
        (r"1{,}000 \cdot 3.14", "1,000 times 3.14"),
        ("2 m", "two m"),
        (r"c = \$5 + \$2.50", "c equals $5 plus $2.50"),
        (r"\$1{,}000 \cdot n", "$1,000 times n"),
        (r"5\$, a \& b, \#3", "five $, a & b, #3"),
        (r"\lfloor x \rfloor < \lceil x \rceil", "the floor of x is less than the ceiling of x"),
        (r"\left\| v \right\| + \langle u, v \rangle", "the norm of v plus u, v"),
        (r"x \rfloor, \lfloor y", "x, the floor of y"),
        (r"\binom{n}{k} = \binom n2", "n choose k equals n choose two"),
        (r"B \Leftarrow C \mp 1", "B is implied by C minus or plus one"),
        (r"\iint f, \oint_C g", "the double integral of f, the contour integral from C of g"),
        (r"O(\log_2 n), X^\top, \frac12", "O of log base two of n, X transpose, one half"),
    ],
)
def test_a_formula_is_said_in_words(latex: str, words: str) -> None:
    assert said(latex, "en-us") == words


def test_other_languages_have_words_of_their_own() -> None:
    assert said(r"\sqrt{x} \ge 2", "es") == "la raíz cuadrada de x es mayor o igual que dos"
    assert said(r"\sqrt{x} \ge 2", "fr") == "la racine carrée de x est supérieur ou égal à deux"
    assert said(r"\sqrt{x} \ge 2", "it") == "la radice quadrata di x è maggiore o uguale a due"
    assert said(r"\sqrt{x} \ge 2", "pt-br") == "a raiz quadrada de x é maior ou igual a dois"
    assert said("x", "ja") is None
    assert bare(r"\frac{1}{2} \times \beta_1 \, x") == "1/2 × beta 1 x"


TOKENS = r"x 7 12 { } ^ _ | ( ) \frac \sqrt [ ] \text \sum \lim \left \\".split()  # noqa: SIM905


@given(st.lists(st.sampled_from(TOKENS), max_size=40))
@settings(deadline=None, max_examples=60)
def test_no_letter_of_a_formula_is_lost(tokens: list[str]) -> None:
    latex = " ".join(tokens)
    words = said(latex, "en-us")
    assert words is not None
    assert words.count("seven") == tokens.count("7")  # a seventh, too
    halves = sum(pair == (r"\frac", "12") for pair in pairwise(tokens))  # as in TeX, where it is 1/2
    assert tokens.count("12") - halves <= words.count("twel") <= tokens.count("12")
