"""A benchmark on an engine that others use: it speaks only while nobody else is being served."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kokoro_lab.lab.bench.timing import InProcess
from kokoro_lab.lab.bench.trial import Listener, Trial


class Interruptible(Listener):
    """Hangs up when `wanted` by somebody else; what it has heard until then counts for nothing."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        super().__init__()
        self._wanted = wanted
        self.disturbed = False

    @property
    def satisfied(self) -> bool:
        self.disturbed = self.disturbed or self._wanted()
        return self.disturbed


def measure_considerately(
    speaker: InProcess,
    texts: Sequence[str],
    *,
    wait: Callable[[], object],
    wanted: Callable[[], bool],
    done: Callable[[int], None] = lambda _: None,
) -> tuple[list[Trial], int]:
    """Speak each text once, undisturbed.

    Parameters
    ----------
    speaker : InProcess
        Warm, and streaming.
    texts : sequence of str
    wait : callable
        Returns when nobody is being served.
    wanted : callable
        Whether somebody is: then the trial ends with the chunk under way, and its text is begun again later.
    done : callable
        Told how many texts are finished.

    Returns
    -------
    trials : list of Trial
        In the order of texts.
    disturbed : int
        Trials that were given up for somebody else.
    """
    trials: list[Trial] = []
    disturbed = 0
    while len(trials) < len(texts):
        wait()
        listener = Interruptible(wanted)
        listener.asks()
        speaker.speak(texts[len(trials)], listener)
        if listener.disturbed:
            disturbed += 1
            continue
        trials.append(listener.trial(speaker.name, len(trials), len(texts[len(trials)]), streamed=True))
        done(len(trials))
    return trials, disturbed
