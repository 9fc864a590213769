"""Directories and tables that appear whole, or not at all."""
