"""Colours of every plot: the palette of Okabe and Ito, which colour-blind people can tell apart.

The colours are darkened for a light background and lightened for a dark one. A plot is drawn in the colours
for a light background; its SVG holds both.
"""

INK, MUTED, LINE, GROUND = "#1b1e23", "#5a626d", "#d9dde3", "#ffffff"
BLUE, ORANGE, GREEN, YELLOW, PURPLE = "#0072b2", "#c25100", "#00694b", "#6b5200", "#b8498c"
ON_DARK = {
    **{INK: "#e8eaed", MUTED: "#a3abb6", LINE: "#363c45", GROUND: "#15181c"},
    **{BLUE: "#56b4e9", ORANGE: "#f0944d", GREEN: "#4fcfa4", YELLOW: "#e9d94f", PURPLE: "#cc5fa3"},
}
"""Colour on a light ground → the same on a dark one."""
SERIES = (BLUE, ORANGE, GREEN, PURPLE, YELLOW, MUTED)
GOOD, BAD = BLUE, ORANGE
PALE = 0.4
"""Opacity of a coloured background with text on it."""
