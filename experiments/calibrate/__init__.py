"""The job `calibrate`: fits the simulated model to the paper's figures."""
