"""The command line `python -m experiments.benchmark`."""

from experiments.benchmark.run import command

if __name__ == "__main__":
    command()
