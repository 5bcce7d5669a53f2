"""Forwards `python -m experiments.rescore` to `python -m experiments.report rescore`."""

import sys

from experiments.report.rescore import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
