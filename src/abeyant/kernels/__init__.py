"""Kernels over columns: hash, deal, narrow, sort, resolve and replay whole arrays of integers.

Columns are buffers of any library (`array`, NumPy, Arrow); nothing here imports one. No thread, clock or I/O, as in the
engine, whose slots and queue of buckets the wheels of `bulk.py` and `trace_wheel.py` use.
"""
