"""Replay each instance's recorded operations on the real engine, for all requested ticks, wheel sizes and time-outs."""

from abeyant.pipeline.replayer.batch import replay, replay_pending
from abeyant.pipeline.replayer.configurations import Configuration, grid

__all__ = ["Configuration", "grid", "replay", "replay_pending"]
