"""The sub-commands of `abeyance` that need Spark, one module each, and what they have in common."""
