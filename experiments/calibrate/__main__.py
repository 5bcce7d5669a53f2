"""The command line `python -m experiments.calibrate`."""

from experiments.calibrate.run import command

if __name__ == "__main__":
    command()
