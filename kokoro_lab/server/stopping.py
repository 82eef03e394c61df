"""How a server stops: streams may end, and those that cannot are told where they can go on.

    SIGTERM → nothing new is taken → `KOKORO_SHUTDOWN_S` → what still speaks hears `server_stopping`, and ends

A stream that was told, or even cut, goes on on the next server from the last frame that its client has (see
`resume`): nothing is kept here that it would need.
"""

from __future__ import annotations

import logging
import os
import signal
import threading

from kokoro_lab.errors import Unavailable
from kokoro_lab.server.state import ServerState

log = logging.getLogger(__name__)

STOPPING = "server_stopping"
GOODBYE_S = 3.0
"""Before the end of the time to stop: in it, those who still listen are told. A connection that does not take
the message is cut after `syntheses.GRACE_S`."""
RETRY_AFTER_S = 5
"""About as long as the next server needs to load."""


def begin_to_stop(state: ServerState, within_s: float) -> threading.Timer:
    """Take nothing new, and tell those who are still being served `GOODBYE_S` before `within_s` is over."""
    state.admission.refuse(
        Unavailable(
            "This server is being stopped.",
            retry_after_s=RETRY_AFTER_S,
            code=STOPPING,
            mend="Ask the next one in a few seconds.",
        ),
        for_good=True,
    )
    under_way = len(state.syntheses.under_way())
    log.info("Stopping: nothing new is taken, %d under way may go on for %g s.", under_way, within_s)
    timer = threading.Timer(max(within_s - GOODBYE_S, within_s / 2), say_goodbye, (state,))
    timer.daemon = True
    timer.start()
    return timer


def say_goodbye(state: ServerState) -> None:
    """End what is still under way, with words where the transport has any."""
    reason = Unavailable(
        "This server stops now; the speech is not at its end.",
        retry_after_s=RETRY_AFTER_S,
        code=STOPPING,
        mend="Send the same request to the next server, with the last id and token that you have.",
    )
    stopped = state.syntheses.interrupt(reason)
    if stopped:
        log.warning("Stopped %d streams before their end; they can be gone on with.", len(stopped))


def replace_this_worker() -> None:
    """Have this process end as by SIGTERM; gunicorn's master starts another one in its place."""
    os.kill(os.getpid(), signal.SIGTERM)
