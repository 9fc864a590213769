"""`make bench-spark`: measure `resolve` on whole tables beside hand-written Spark plans, DuckDB and Polars."""
