"""Our timer on a virtual clock."""

from __future__ import annotations

from abeyant import ManualTimer
from lab.peers.our_timer import OurTimerRival


class ManualTimerRival(OurTimerRival):
    """The rival that measures `abeyant.ManualTimer`, with the tick of `SystemTimer`.

    Its callbacks run inside the caller's `advance`.
    """

    stalls = False
    real_clock = False

    def __init__(self) -> None:
        self.manual = ManualTimer(tick=0.001)
        super().__init__(self.manual)
        self._owed = 0.0

    def pass_time(self, seconds: float) -> None:
        """Record the time that is to pass at the next turn."""
        self._owed += seconds

    def turn(self) -> None:
        """Advance by the time that `pass_time` collected."""
        if self._owed:
            owed, self._owed = self._owed, 0.0
            self.manual.advance(owed)
