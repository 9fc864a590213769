"""Idle time-outs: call a function when a peer has been silent for too long."""

from abeyant.idle.detector import IdleDetector, IdleStats

__all__ = ["IdleDetector", "IdleStats"]
