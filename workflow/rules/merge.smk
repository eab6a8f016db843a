rule merge:
    input:
        folders=RUN.unit_folders(),
        skipped=str(SKIPPED),
    output:
        tables=[update(path) for path in RUN.merged_tables()],
    log:
        "logs/merge.log",
    benchmark:
        "benchmarks/merge.tsv"
    conda:
        "../envs/rl-insight.yaml"
    retries: 1
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=30,
    params:
        options=RUN.merge_options(),
    script:
        "../../scripts/merge.py"
