"""The command line `python -m experiments.rescore`; see `experiments.report.rescore`."""

from experiments.report.rescore import main

if __name__ == "__main__":
    main()
