"""`python -m abeyant`: the command `abeyant`."""

from abeyant.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
