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
    wildcard_constraints:
        parser=NAME,
        unit=NAME,
    retries: 2
    conda:
        "../envs/rl-insight.yaml"
    resources:
        mem_mb=parse_memory,
        runtime=30,
    params:
        options=parse_options,
    script:
        "../../scripts/parse.py"
