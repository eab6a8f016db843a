rule parse:
    input:
        unit="parsed/{parser}/{unit}.json",
        files=rank_files,
    output:
        folder=directory("parsed/{parser}/{unit}"),
    log:
        "logs/parse/{parser}/{unit}.log",
    benchmark:
        "benchmarks/parse/{parser}/{unit}.tsv"
    conda:
        "../envs/rl-insight.yaml"
    retries: 2
    resources:
        mem_mb=parse_memory,
        runtime=30,
    wildcard_constraints:
        parser="[A-Za-z0-9_-]+",
        unit="[A-Za-z0-9_-]+",
    params:
        options=parse_options,
    script:
        "../../scripts/parse.py"
