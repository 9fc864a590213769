"""The clusters of the stand-in for trivup."""
