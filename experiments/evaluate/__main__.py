"""The command line `python -m experiments.evaluate`."""

from experiments.evaluate.run import command

if __name__ == "__main__":
    command()
