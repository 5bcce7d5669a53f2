"""The command line `python -m experiments.generate`."""

from experiments.generate.run import command

if __name__ == "__main__":
    command()
