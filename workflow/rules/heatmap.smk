if RUN.loads():

    rule structure:
        input:
            loads=RUN.loads(),
            attempt=str(ATTEMPT),
        output:
            tables=[update(path) for path in RUN.load_tables()],
        log:
            "logs/structure.log",
        benchmark:
            "benchmarks/structure.tsv"
        retries: 1
        conda:
            "../envs/rl-insight.yaml"
        resources:
            mem_mb=lambda wildcards, attempt: 2000 * attempt,
            runtime=30,
        params:
            options=unchanged(RUN.structure_options()),
        script:
            "../../scripts/structure.py"


for visualizer in RUN.visualizers("heatmap"):

    rule:
        name:
            f"heatmap_{visualizer.name}"
        input:
            tables=RUN.tables_of(visualizer),
            attempt=str(ATTEMPT),
        output:
            page=report(
                update(RUN.output_of(visualizer)),
                caption="../report/heatmap.rst",
                category="Expert load",
                labels=report_labels(visualizer.output),
            ),
        log:
            f"logs/heatmap_{visualizer.name}.log",
        benchmark:
            f"benchmarks/heatmap_{visualizer.name}.tsv"
        retries: 1
        # As short as those of timeline.smk.
        localrule: True
        conda:
            "../envs/rl-insight.yaml"
        resources:
            mem_mb=lambda wildcards, attempt: 2000 * attempt,
            runtime=30,
        params:
            visualizer=unchanged(visualizer.name),
            options=unchanged(RUN.visualizer_options(visualizer)),
        script:
            "../../scripts/heatmap.py"
