"""Idle time-outs: a peer that has been silent for too long."""

from abeyant.idle.detector import IdleDetector, IdleStats

__all__ = ["IdleDetector", "IdleStats"]
