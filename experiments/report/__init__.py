"""The command `report`: pages, comparisons and audits of runs."""
