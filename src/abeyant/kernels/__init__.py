"""Functions over whole columns of integers: hash, shard, pack, sort, resolve and replay them.

Columns are buffers of any library (`array`, NumPy, Arrow); none of these libraries is imported here. As in the engine,
there are no threads, clocks or I/O. The wheels of `bulk.py` and `trace_wheel.py` use its slots and its delay queue.
"""
