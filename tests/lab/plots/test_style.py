"""Every plot has words, shows itself on a light and on a dark ground, and draws no frame without data."""

from __future__ import annotations

import base64
import inspect
import io
import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps
from matplotlib import pyplot as plt
from PIL import Image

from kokoro_lab.lab import plots
from kokoro_lab.lab.plots import Plot, palette
from kokoro_lab.lab.plots.palette import ON_DARK, PALE, SERIES
from tests.browser import chromium
from tests.lab.plots.examples import EXAMPLES

SHEET = (Path(__file__).parents[3] / "kokoro_lab/lab/report/style.css").read_text("utf-8")
GROUNDS = re.findall(r"--ground: (#\w{6});", SHEET)
DRAWN = {
    name
    for name in dir(plots)
    if inspect.isfunction(one := getattr(plots, name)) and one.__module__ != __name__
}


def picture(html: str) -> str:
    (encoded,) = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)"', html)
    return base64.b64decode(encoded).decode()


def test_every_plot_has_an_example() -> None:
    assert set(EXAMPLES) == DRAWN
    assert len(DRAWN) > 25


@pytest.fixture(scope="module", params=sorted(EXAMPLES))
def drawn(request: pytest.FixtureRequest) -> Plot:
    return EXAMPLES[request.param][0]()


@pytest.fixture(scope="module")
def html(drawn: Plot) -> str:
    return drawn._repr_html_()


def test_a_plot_has_a_title_a_caption_and_words_for_who_does_not_see_it(html: str) -> None:
    assert html.startswith('<figure class="plot"')
    assert re.search(r"<figcaption[^>]*><b>[A-Z].{8,}\.</b> .{20,}\.</figcaption>", html)
    (alt,) = re.findall(r'<img src="[^"]+" alt="([^"]{15,})"', html)
    assert "nan" not in alt
    assert "http" not in re.sub(r'base64,[^"]+', "", html), "nothing is fetched"


def test_every_panel_says_what_is_on_its_axes(drawn: Plot) -> None:
    assert drawn.figure is not None
    labels = [axes.get_xlabel() or axes.get_ylabel() for axes in drawn.figure.axes if axes.get_visible()]
    named = [text.get_text() for axes in drawn.figure.axes for text in axes.get_xticklabels()]
    assert any(labels) or any(name and not re.match(r"[−\d.]+$", name) for name in named)
    for axes in drawn.figure.axes:
        for label in (axes.get_xlabel(), axes.get_ylabel()):
            assert "_" not in label, "a name of the code"
            assert label not in ("clip", "mel band")


def test_a_plot_takes_the_colours_of_its_ground(html: str) -> None:
    svg = picture(html)
    assert "@media (prefers-color-scheme: dark)" in svg
    drawn_in = set(re.findall(r"(?:fill|stroke): (#\w{6})", svg))
    assert not drawn_in & set(ON_DARK), "a colour that stays as it is on a dark ground"
    assert f"var(--c{palette.INK[1:]})" in svg
    assert len(svg) < 500_000


def test_a_plot_is_shown_once(drawn: Plot) -> None:
    """An open figure is shown a second time at the end of its cell, by matplotlib itself."""
    assert drawn.figure is not None
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_without_data_a_sentence_says_why(name: str) -> None:
    empty = EXAMPLES[name][1]()
    assert empty.figure is None
    assert re.fullmatch(r'<p class="plot"><b>.{8,}\.</b> [A-Z].{12,}\.</p>', empty._repr_html_())
    with pytest.raises(ValueError, match="Nothing can be drawn"):
        empty.savefig(io.BytesIO())


def test_a_picture_has_two_pixels_a_point() -> None:
    written = io.BytesIO()
    plot = EXAMPLES["loading"][0]()
    plot.savefig(written, format="png")
    assert plot.figure is not None
    assert Image.open(written).size == tuple(int(2 * 72 * inch) for inch in plot.figure.get_size_inches())


def test_a_spectrogram_has_a_column_each_10_ms_and_frequencies() -> None:
    plot = EXAMPLES["spectrograms_compared"][0]()
    assert plot.figure is not None
    axes = plot.figure.axes[0]
    assert axes.images[0].get_size()[1] == 201
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        str(hz) for hz in (200, 500, 1000, 2000, 4000, 8000)
    ]


def test_a_long_clip_is_drawn_in_lines_and_what_is_left_out_is_said() -> None:
    from tests.lab.plots.examples import clip

    plot = plots.speech(clip(11))
    assert plot.figure is not None
    assert [axes.get_xlim() for axes in plot.figure.axes[:4:2]] == [(0, 8), (8, 16)]
    assert "of 34 s are drawn" not in plot.caption
    assert "The first 32 of 34 s are drawn." in plots.speech(clip(34)).caption


def test_the_worst_clip_is_named_first() -> None:
    plot = EXAMPLES["within_band"][0]()
    assert plot.figure is not None
    names = [text.get_text() for text in plot.figure.axes[0].get_yticklabels()]
    assert names[:2] == ["clip-38", "clip-37"]
    assert names[-1] == "14 others"
    assert "5 beyond a limit" in plot.alt
    assert "1 clip without a value not drawn." in plot.caption


def test_what_is_no_clip_and_not_compared_with_the_default_is_called_by_its_name() -> None:
    figures = plots.within_band(
        ["rtf", "ttfa"], [1.0, 12.0], low=None, high=10, label="worse, %", noun="figure"
    )
    assert figures.title == "Worse, figure by figure"
    assert figures.alt.startswith("2 figures, 1 beyond a limit.")
    table = pd.DataFrame({"ratio": [0.9], "low": [0.8], "high": [1.0]}, index=["both"])
    cost = plots.against_default({"CPU time": table}, 0.05, label="one pass ÷ two", title="One pass")
    trials = pd.DataFrame([("computing", 0, 1.1)], columns=["figure", "trial", "ratio"])
    in_turn = plots.ratios_in_turn(trials, label="computing ÷ TTFA alone", title="First sounds")
    assert (cost.title, in_turn.title) == ("One pass", "First sounds")
    for plot in (cost, in_turn):
        assert plot.figure is not None
    assert cost.figure.axes[0].get_xlabel() == "one pass ÷ two"
    assert in_turn.figure.axes[0].get_ylabel() == "computing ÷ TTFA alone"


def test_eight_steps_are_told_apart() -> None:
    table = pd.DataFrame({"layer": "conv", "method": [f"m{i}" for i in range(8)], "held_out_db": range(8)})
    plot = plots.ladder(
        table, rows="layer", steps="method", value="held_out_db", label="signal over error, dB"
    )
    assert plot.figure is not None
    dots = plot.figure.axes[0].collections[:8]
    looks = {(str(dot.get_facecolor()), str(dot.get_paths()[0].vertices)) for dot in dots}
    assert len(looks) == 8


# ---------------------------------------------------------------------------------------------- colours


def linear(colour: str) -> np.ndarray:
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ (0.2126, 0.7152, 0.0722))


def contrast(one: str, other: str) -> float:
    """Of WCAG 2: 4.5 for text, 3 for marks."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def mixed(colour: str, ground: str, opacity: float) -> str:
    parts = [
        round(opacity * int(colour[i : i + 2], 16) + (1 - opacity) * int(ground[i : i + 2], 16))
        for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in parts)


SCHEMES = [(dict(zip(ON_DARK, ON_DARK, strict=True)), 0), (ON_DARK, 1)]


@pytest.mark.parametrize(("colours", "ground"), SCHEMES, ids=["light", "dark"])
def test_colours_stand_out_from_their_ground(colours: dict[str, str], ground: int) -> None:
    assert len(GROUNDS) == 2
    for text in (palette.INK, palette.MUTED, palette.ORANGE):
        assert contrast(colours[text], GROUNDS[ground]) >= 4.5
    for mark in SERIES:
        assert contrast(colours[mark], GROUNDS[ground]) >= 3, mark
        assert contrast(colours[mark], colours[palette.GROUND]) >= 3, "letters in a bar"
        assert contrast(colours[palette.INK], mixed(colours[mark], GROUNDS[ground], PALE)) >= 4.5, mark


# Machado, Oliveira and Fernandes (2009), severity 1: what who lacks one kind of cone sees of linear light
SEEN = {
    "without red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "without green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
}
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def lab(colour: str, seen: str) -> np.ndarray:
    xyz = np.array(TO_XYZ) @ np.clip(np.array(SEEN[seen]) @ linear(colour), 0, 1) / (0.9505, 1, 1.089)
    x, y, z = np.cbrt(xyz)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize(("colours", "ground"), SCHEMES, ids=["light", "dark"])
def test_colours_are_told_apart_by_the_colour_blind(colours: dict[str, str], ground: int, seen: str) -> None:
    for one, other in itertools.combinations(SERIES, 2):
        apart = np.linalg.norm(lab(colours[one], seen) - lab(colours[other], seen))
        assert apart > 9, (one, other)


def test_no_map_goes_from_red_to_green() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(palette.__file__).parent.glob("*.py"))
    assert set(re.findall(r'cmap="(\w+)"', source)) <= {"cividis", "viridis", "magma"}
    assert not re.search(r'"tab:|"C\d"|"(red|green|black)"|colormaps\[', source), (
        "a colour beside the palette"
    )
    for name in ("cividis", "magma"):
        lightness = [
            luminance("#" + "".join(f"{int(255 * c):02x}" for c in colormaps[name](x)[:3]))
            for x in (0.0, 0.5, 1.0)
        ]
        assert lightness == sorted(lightness)


# ---------------------------------------------------------------------------------------------- a browser


@pytest.mark.test_all
def test_a_browser_shows_each_plot_light_and_dark_and_on_a_phone() -> None:
    html = "".join(make()._repr_html_() for make, _ in EXAMPLES.values())
    with chromium() as browser:
        for scheme, ground in zip(("light", "dark"), GROUNDS, strict=True):
            page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
            page.set_content(f"<style>{SHEET} body {{ background: var(--ground) }}</style>{html}")
            broken = page.evaluate("[...document.images].filter(one => !one.naturalWidth).length")
            assert broken == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, "the page itself stays"
            shot = Image.open(io.BytesIO(page.locator("img").nth(3).screenshot())).convert("RGB")
            corner = shot.getpixel((shot.width - 2, 2))
            assert corner == tuple(int(ground[i : i + 2], 16) for i in (1, 3, 5))
            page.close()


@pytest.mark.test_all
@pytest.mark.parametrize(("theme", "scheme"), [("true", "light"), ("false", "dark")])
def test_in_jupyterlab_a_plot_follows_its_theme_and_not_the_system(theme: str, scheme: str) -> None:
    figure = EXAMPLES["loading"][0]()._repr_html_()
    with chromium() as browser:
        page = browser.new_page(color_scheme={"light": "dark", "dark": "light"}[scheme])
        page.set_content(f'<body data-jp-theme-light="{theme}"><div class="lm-Widget">{figure}</div></body>')
        assert page.eval_on_selector("img", "image => getComputedStyle(image).colorScheme") == scheme
        shot = Image.open(io.BytesIO(page.locator("img").screenshot())).convert("RGB")
        blue = {"light": palette.BLUE, "dark": ON_DARK[palette.BLUE]}[scheme]
        assert tuple(int(blue[i : i + 2], 16) for i in (1, 3, 5)) in {
            shot.getpixel((x, y)) for x in range(shot.width) for y in range(0, shot.height, 4)
        }
        page.close()
