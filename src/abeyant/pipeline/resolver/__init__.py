"""Resolve operations with Spark: `tables` takes whole tables, `streams` streams, and `either` both."""
