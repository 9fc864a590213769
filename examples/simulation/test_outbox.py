"""Seeds find the payment that is booked twice; the mended shop stands two hundred of them."""

from __future__ import annotations

import pytest

from abeyant import simulation
from examples.simulation.outbox import pay_and_hope, pay_by_number, story


def test_paying_again_books_twice() -> None:
    with pytest.raises(AssertionError, match="booked") as caught:
        simulation.search(lambda: story(pay_and_hope), range(2000), any_hashes=True)
    assert "seed" in caught.value.__notes__[0]


def test_a_number_for_each_payment_books_once() -> None:
    assert simulation.search(lambda: story(pay_by_number), range(100), any_hashes=True) == 100
