"""The command line `python -m experiments.evolve`."""

from experiments.evolve.run import command

if __name__ == "__main__":
    command()
