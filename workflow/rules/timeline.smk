for visualizer in RUN.visualizers("timeline"):

    rule:
        name:
            f"timeline_{visualizer.name}"
        input:
            tables=RUN.tables_of(visualizer),
            attempt=str(ATTEMPT),
        output:
            page=report(
                update(visualizer.output),
                caption="../report/timeline.rst",
                category="Timeline",
                labels=report_labels(visualizer.output),
            ),
        log:
            f"logs/timeline_{visualizer.name}.log",
        benchmark:
            f"benchmarks/timeline_{visualizer.name}.tsv"
        retries: 1
        # A picture takes a core for seconds and some hundred MB, the wait for a place in a queue longer.
        # A job that reads all captures or all loads (parse, merge, structure) does go to the cluster.
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
            "../../scripts/timeline.py"
