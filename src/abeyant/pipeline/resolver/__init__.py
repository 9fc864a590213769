"""Resolve operations with Spark: whole `tables`, `streams`, and `either`, which takes both."""
