"""Forwards `python -m experiments.transcript` to `python -m experiments.report transcript`."""

import sys

from experiments.report.transcript import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
