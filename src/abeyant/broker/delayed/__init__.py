"""The operations that wait, each a `DelayedOperation` in a purgatory of its broker."""
