"""Work is done at once, by the thread that finished last; what goes wrong goes to whoever asked for it."""

from __future__ import annotations

import os
import threading

import pytest

from kokoro_lab.scheduling.kept_threads import KeptThreads


def test_one_task_after_another_is_done_by_the_same_thread() -> None:
    threads = KeptThreads("test")
    first = threads.submit(threading.get_ident).result(10)
    # However soon it comes: a thread is free before its result is told
    assert {threads.submit(threading.get_ident).result(10) for _ in range(200)} == {first}
    assert first != threading.get_ident()


def test_work_waits_for_no_other() -> None:
    threads = KeptThreads("test")
    together = threading.Barrier(3)

    def meet() -> int:
        together.wait(10)
        return threading.get_ident()

    asked = [threads.submit(meet) for _ in range(3)]
    met = {future.result(20) for future in asked}
    assert len(met) == 3
    assert threads.submit(threading.get_ident).result(10) in met


def test_what_work_raises_is_raised_where_its_result_is_asked_for() -> None:
    threads = KeptThreads("test")

    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        threads.submit(fail).result(10)
    assert threads.submit(lambda: "whole").result(10) == "whole"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_has_threads_of_its_own() -> None:
    threads = KeptThreads("test")
    threads.submit(lambda: None).result(10)
    child = os.fork()
    if child == 0:
        try:
            os._exit(threads.submit(lambda: 7).result(10))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
