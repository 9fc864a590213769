"""A partition as its broker sees it: its log and high watermark, and its part in replication.

`partition` is one replica, `remote` a follower as its leader sees it; `fetcher` is a follower's fetch loop, `session`
the leader's end of it. Replicas share the bytes of their batches.
"""
