"""The sub-commands of `abeyant` that need Spark, one module each, and what they have in common."""
