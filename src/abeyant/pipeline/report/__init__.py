"""Reports of analyses, replays, the replication model and outcomes: each is one self-contained HTML file."""
