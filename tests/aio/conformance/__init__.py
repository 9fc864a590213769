"""CPython's own asyncio tests, on our loop in place of asyncio's selector loop; see __main__.py."""
