"""The command line `python -m experiments.transcript`; see `experiments.report.transcript`."""

from experiments.report.transcript import main

if __name__ == "__main__":
    main()
