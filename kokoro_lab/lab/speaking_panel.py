"""A panel for JupyterLab: type a text, choose voice, speed and variant, and hear it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets as widgets

from kokoro_lab.config import SPEED_MAX, SPEED_MIN, VARIANTS, settings
from kokoro_lab.errors import KokoroLabError
from kokoro_lab.speech.engine import Engine, load_engine
from kokoro_lab.weights.voices import GENDERS, LANGUAGE_OF_PREFIX, reading_voices

TEXT = "Hello there. Change this text, choose who reads it, and press Speak."


class SpeakingPanel:
    """What a person sees and clicks. A notebook shows the panel if it is the last expression of a cell.

    Parameters
    ----------
    load : callable
        Takes a variant, returns its engine; called when the chosen variant is not that of the last engine.
    """

    def __init__(self, load: Callable[[str], Engine] = load_engine) -> None:
        self._load = load
        self._loaded: tuple[str, Engine] | None = None
        wide = {"width": "40em"}
        self.text = widgets.Textarea(TEXT, description="Text", rows=3, layout=wide)
        self.voice = widgets.Dropdown(
            options=[(_described(name), name) for name in reading_voices()],
            value=settings().voice if settings().voice in reading_voices() else None,
            description="Voice",
        )
        self.speed = widgets.FloatSlider(
            1.0, min=SPEED_MIN, max=SPEED_MAX, step=0.05, description="Speed", layout=wide
        )
        self.variant = widgets.Dropdown(options=VARIANTS, value=settings().variant, description="Variant")
        self.speak = widgets.Button(description="Speak", button_style="primary", icon="play")
        self.heard = widgets.HTML()
        self.speak.on_click(self._on_speak)
        self.root = widgets.VBox(
            [self.text, widgets.HBox([self.voice, self.variant]), self.speed, self.speak, self.heard]
        )
        self.root.add_class("kokoro-speaking")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.root._repr_mimebundle_(**options)

    def _on_speak(self, _: Any) -> None:
        self.speak.disabled = True
        loaded = self._loaded is not None and self._loaded[0] == self.variant.value
        self.heard.value = "Speaking …" if loaded else f"Loading {self.variant.value} …"
        try:
            clip = self._engine().synthesize(self.text.value, voice=self.voice.value, speed=self.speed.value)
        except KokoroLabError as error:
            self.heard.value = f'<p role="alert">{escape(str(error))}</p>'
        else:
            self.heard.value = clip._repr_html_().replace("<audio", "<audio autoplay", 1)
        finally:
            self.speak.disabled = False

    def _engine(self) -> Engine:
        """The engine of the chosen variant. Only one is kept, since each takes hundreds of megabytes."""
        if self._loaded is None or self._loaded[0] != self.variant.value:
            self._loaded = None
            self._loaded = self.variant.value, self._load(self.variant.value)
        return self._loaded[1]


def _described(voice: str) -> str:
    language, gender = LANGUAGE_OF_PREFIX[voice[0]], GENDERS[voice[1]]
    return f"{voice} ({language}, {gender})"
