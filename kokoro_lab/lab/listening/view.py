"""The page of a listening test in JupyterLab: the one that `kokoro-lab listen --serve` serves, in a frame.

The frame has keyboard shortcuts of its own: in JupyterLab's page, A, B and X would insert and cut cells.
"""

from __future__ import annotations

from threading import Thread
from typing import Any

from kokoro_lab.lab.listening.panel import Panel
from kokoro_lab.lab.listening.session import ListeningSession
from kokoro_lab.lab.routes.listening import bound_to, make_listening_server


class ListeningView:
    """Shows the test to a listener, as the last expression of a notebook cell.

    A thread of the kernel serves the page on the loopback, as long as this object exists.

    Parameters
    ----------
    session : ListeningSession
        The test.
    listener : str
        The listener, who continues after their answers so far.

    Raises
    ------
    ParameterError, AnswersError
        As `ListeningSession.sitting`.

    Attributes
    ----------
    url : str
        Where the page is, for a tab of its own.
    """

    def __init__(self, session: ListeningSession, listener: str) -> None:
        session.sitting(listener)
        panel = Panel(session, [listener])
        self._server, address = make_listening_server(panel, bound_to("127.0.0.1", 0))
        self.url = f"{address}{panel.tokens[listener]}/"
        Thread(target=self._server.serve_forever, name="listening test", daemon=True).start()

    def close(self) -> None:
        """Stop serving. Answers are kept."""
        self._server.shutdown()
        self._server.server_close()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        frame = (
            f'<iframe src="{self.url}" title="Listening test" allow="autoplay" width="100%" height="640" '
            'style="border: 1px solid var(--line, #888)"></iframe>'
            f'<p><a href="{self.url}" target="_blank">In a tab of its own.</a> Both work on this machine, '
            "while this kernel runs. Every answer is kept: to go on later, run this cell again.</p>"
        )
        return {"text/html": frame, "text/plain": f"A listening test: {self.url}"}
