"""The page of a listening test in JupyterLab: play A, B and X as often as you like, then say which X is."""

from __future__ import annotations

import io
from collections.abc import Callable
from html import escape
from typing import Any, get_args

import ipywidgets as widgets

from kokoro_lab.errors import KokoroLabError
from kokoro_lab.lab import plots
from kokoro_lab.lab.listening.plan import Letter
from kokoro_lab.lab.listening.session import BUTTONS, ListeningSession

HOW = (
    "One of A and B is X. Play each as often as you like, in any order; then say which. If you hear no "
    "difference, guess. Do not change the volume within a trial. You may stop at any time: every answer is "
    "kept."
)


class ListeningView:
    """What a listener sees. The last expression of a notebook cell shows it.

    Nothing of it tells what A, B and X are, or whether an answer was right, before the last one is given.

    Parameters
    ----------
    session : ListeningSession
        The test.
    listener : str
        Who listens; their answers so far are taken up.

    Raises
    ------
    ParameterError, AnswersError
        As `ListeningSession.sitting`.
    """

    def __init__(self, session: ListeningSession, listener: str) -> None:
        self._session = session
        self._sitting = session.sitting(listener)
        self._answers = self._sitting.answers
        self._plays = dict.fromkeys(BUTTONS, 0)
        self.heading = widgets.HTML()
        self.progress = widgets.IntProgress(max=self._answers.trials, layout={"width": "24em"})
        self.play = {
            button: widgets.Button(description=f"▶ {button}", tooltip=f"Play {button}") for button in BUTTONS
        }
        self.answers = {
            letter: widgets.Button(description=f"X is {letter}", button_style="primary")
            for letter in get_args(Letter)
        }
        self.message = widgets.HTML(_said(self._answers.note))
        self._sound = widgets.HBox()
        for button, control in self.play.items():
            control.on_click(self._on_play(button))
        for letter, control in self.answers.items():
            control.on_click(self._on_answer(letter))
        self.root = widgets.VBox()
        self.root.add_class("kokoro-listening")
        self._next()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.root._repr_mimebundle_(**options)

    def _next(self) -> None:
        """Show the trial that is not answered yet, or the result."""
        self._plays = dict.fromkeys(BUTTONS, 0)
        self._silence()
        self.progress.value = len(self._answers.letters)
        if self._answers.complete:
            self.root.children = (self.message, *self._result())
            return
        number = len(self._answers.letters) + 1
        self.heading.value = f"<b>Trial {number} of {self._answers.trials}</b><br>{HOW}"
        self._allow_answers()
        self.root.children = (
            self.heading,
            self.progress,
            widgets.HBox(list(self.play.values())),
            widgets.HBox(list(self.answers.values())),
            self._sound,
            self.message,
        )

    def _on_play(self, button: str) -> Callable[[Any], None]:
        def clicked(_: Any) -> None:
            self._silence()
            # A new player each time: one that is given the same sound again does not start again
            player = widgets.Audio(
                value=self._sitting.wav(button), format="wav", autoplay=True, loop=False, controls=False
            )
            self._sound.children = (player,)
            self._plays[button] += 1
            self._allow_answers()

        return clicked

    def _on_answer(self, letter: Letter) -> Callable[[Any], None]:
        def clicked(_: Any) -> None:
            if not self._all_played:  # a second click, on its way when the first one was taken
                return
            try:
                self._answers.append(letter, self._plays)
            except KokoroLabError as error:
                self.message.value = _said(str(error))
                return
            self.message.value = ""
            self._next()

        return clicked

    @property
    def _all_played(self) -> bool:
        return all(self._plays.values())

    def _allow_answers(self) -> None:
        """Nobody can say which of two X is who has not heard all three."""
        for control in self.answers.values():
            control.disabled = not self._all_played

    def _silence(self) -> None:
        players, self._sound.children = self._sound.children, ()
        for player in players:
            player.close()

    def _result(self) -> list[Any]:
        result = self._session.result()
        image = io.BytesIO()
        plots.right_answers(result.table()).savefig(image, format="png", dpi=100)
        said = "".join(f"<li>{escape(sentence)}</li>" for sentence in result.sentences())
        table = result.table().to_html(index=False, float_format=lambda value: f"{value:.3g}", border=0)
        return [
            widgets.HTML(
                f"<b>Thank you. All {self._answers.trials} trials are answered.</b>{table}<ul>{said}</ul>"
            ),
            widgets.Image(value=image.getvalue(), format="png", layout={"max_width": "50em"}),
        ]


def _said(text: str) -> str:
    return f'<span style="color: #b00">{escape(text)}</span>' if text else ""
