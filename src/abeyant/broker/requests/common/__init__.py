"""What several APIs share: the call in work, checks, and parts of responses."""
