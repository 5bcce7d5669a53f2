"""The command line `python -m experiments.search`."""

from experiments.search.run import command

if __name__ == "__main__":
    command()
