"""The subcommands of `abeyant` that need Spark, one module each, and the code that they share."""
