"""Spark itself: find a Java, start a session, show progress, explain failures, and read and write files through it."""
