"""Partitions on a broker: log, high watermark and replication.

`partition` is one replica; `remote` is the leader's record of a follower; `fetcher` is a follower's fetch loop, and
`session` the leader's side of it. Replicas share the bytes of their batches.
"""
