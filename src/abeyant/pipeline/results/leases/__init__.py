"""Leases: one writer at a time for a result or a stream's output; a dead writer's lease is released or expires.

`local` locks a file of this machine, `store` renews a small file on a store without locks, and `queries` holds either
kind of lease while a streaming query runs.
"""
