rule merge:
    input:
        folders=RUN.unit_folders(),
        skipped=str(SKIPPED),
        growing=str(GROWING),
        attempt=str(ATTEMPT),
    output:
        tables=[update(path) for path in RUN.merged_tables()],
        loads=RUN.loads(),
    log:
        "logs/merge.log",
    benchmark:
        "benchmarks/merge.tsv"
    retries: 1
    conda:
        "../envs/rl-insight.yaml"
    # Where units are many, two processes read them (rl_insight/pipeline/merge_children.py).
    threads: 2
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=30,
    params:
        options=unchanged(RUN.merge_options()),
    script:
        "../../scripts/merge.py"
