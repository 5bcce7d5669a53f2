"""The command line `python -m experiments.load`; see `experiments.benchmark.model_calls`."""

from experiments.benchmark.model_calls import main

if __name__ == "__main__":
    main()
