"""Spark itself: a Java that works, a session as we need it, how its JVM ended, what it is doing, and its batches."""
