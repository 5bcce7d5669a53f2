"""The command line `python -m experiments.sensitivity`."""

from experiments.sensitivity.run import command

if __name__ == "__main__":
    command()
