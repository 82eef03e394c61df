"""Whether new speech is taken, and if not, why. What is under way is never touched from here."""

from __future__ import annotations

import threading

from kokoro_lab.errors import Unavailable


class Admission:
    """Reasons for which the server takes nothing new just now. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, Unavailable] = {}

    @property
    def reasons(self) -> list[str]:
        """Codes of the reasons in force; none if everything is taken."""
        with self._lock:
            return list(self._reasons)

    def refuse(self, reason: Unavailable, *, for_good: bool = False) -> None:
        """Take nothing new from now on, for this reason; it is known by its code. One that is `for_good` is
        told before those that pass: who hears of those alone would come back to here."""
        with self._lock:
            others = {code: other for code, other in self._reasons.items() if code != reason.code}
            own = {reason.code: reason}
            self._reasons = {**own, **others} if for_good else {**others, **own}

    def admit(self, code: str) -> None:
        """That reason is over. That it was none before is no error."""
        with self._lock:
            self._reasons.pop(code, None)

    def check(self) -> None:
        """Before something new is begun.

        Raises
        ------
        Unavailable
            The first reason of those in force.
        """
        with self._lock:
            reason = next(iter(self._reasons.values()), None)
        if reason is not None:
            # A new one for each: a raised exception holds on to the frames that it passed
            raise Unavailable(
                reason.message, retry_after_s=reason.retry_after_s, code=reason.code, mend=reason.mend
            )
