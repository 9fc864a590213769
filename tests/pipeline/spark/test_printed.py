"""What a call prints is told to who asked; what others print meanwhile is theirs."""

from __future__ import annotations

import io
import sys
import threading
from functools import partial

import pytest

from abeyant.pipeline.spark.printed import printed


def test_what_a_call_prints_is_told_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(partial(print, "a plan")) == "a plan\n"
    print("after")
    assert capsys.readouterr().out == "after\n"


def test_what_another_thread_prints_meanwhile_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        print("mine")
        other = threading.Thread(target=print, args=("another's",), kwargs={"flush": True})
        other.start()
        other.join()
        print("mine too")

    assert printed(call) == "mine\nmine too\n"
    assert capsys.readouterr().out == "another's\n"


def test_threads_that_ask_at_once_each_get_their_own() -> None:
    start = threading.Barrier(8)
    told: dict[int, str] = {}

    def ask(number: int) -> None:
        start.wait()
        for _ in range(200):
            told[number] = told.get(number, "") + printed(partial(print, number))

    before = sys.stdout
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == {number: f"{number}\n" * 200 for number in range(8)}
    assert sys.stdout is before


def test_an_error_puts_the_output_back(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    with pytest.raises(ZeroDivisionError):
        printed(lambda: 1 // 0)
    assert sys.stdout is shown


def test_a_process_without_an_output_can_ask_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)  # as under pythonw
    assert printed(lambda: print("a plan", flush=True)) == "a plan\n"
    assert sys.stdout is None
