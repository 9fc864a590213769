"""Code that several APIs share: calls, checks, and parts of responses."""
