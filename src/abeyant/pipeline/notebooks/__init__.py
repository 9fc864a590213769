"""Show the outcomes of operations in a notebook."""
