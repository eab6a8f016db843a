"""The workflow seen from Python: units, parse jobs, the merge, starting Snakemake."""
