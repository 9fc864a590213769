"""A partition as its broker sees it: its log and high watermark, and its part in replication.

`partition` is one replica, `leading` what a leader knows of its followers; `fetcher` is a follower's loop and `session`
the leader's end of it. Replicas share the bytes of their batches.
"""
