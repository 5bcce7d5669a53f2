"""The command line `python -m experiments.retrieval`; see `experiments.benchmark.retrieval`."""

from experiments.benchmark.retrieval import main

if __name__ == "__main__":
    main()
