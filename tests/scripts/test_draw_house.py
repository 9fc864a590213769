"""The picture of the rooms is what the imports say."""

from __future__ import annotations

from graphlib import CycleError

import pytest

from scripts import draw_house


@pytest.mark.slow  # reads all imports
def test_the_picture_is_current() -> None:
    assert draw_house.PICTURE.read_text(encoding="utf-8") == draw_house.draw(), "python -m scripts.draw_house"


def test_an_import_that_follows_from_others_is_left_out() -> None:
    found = {"broker": {"aio", "timer"}, "aio": {"timer"}, "timer": set[str]()}
    assert draw_house.reduced(found) == {"broker": {"aio"}, "aio": {"timer"}, "timer": set()}
    assert draw_house.levels(found) == {"timer": 0, "aio": 1, "broker": 2}


def test_a_circle_of_rooms_cannot_be_drawn() -> None:
    with pytest.raises(CycleError):
        draw_house.levels({"a": {"b"}, "b": {"a"}})


def test_a_new_room_needs_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw_house, "rooms", lambda: ["engine", "cellar"])
    with pytest.raises(SystemExit, match="cellar has no place: add it to PLACES and WORDS"):
        draw_house.draw()
