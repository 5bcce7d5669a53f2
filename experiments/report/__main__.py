"""The command line `python -m experiments.report`."""

from experiments.report.run import command

if __name__ == "__main__":
    command()
