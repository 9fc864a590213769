"""Replay the trace of each instance through the real engine, for every tick, wheel size and time-out requested."""

from abeyant.pipeline.replayer.batch import replay, replay_pending
from abeyant.pipeline.replayer.configurations import Configuration, grid

__all__ = ["Configuration", "grid", "replay", "replay_pending"]
