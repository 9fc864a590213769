"""`python -m abeyance`: the command `abeyance`."""

from abeyance.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
