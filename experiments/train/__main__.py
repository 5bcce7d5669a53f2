"""The command line `python -m experiments.train`."""

from experiments.train.run import command

if __name__ == "__main__":
    command()
