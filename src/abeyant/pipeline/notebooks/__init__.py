"""What became of operations, shown in a notebook."""
