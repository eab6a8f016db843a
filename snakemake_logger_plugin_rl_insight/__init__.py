"""Snakemake finds its logger plugins by package name: this one is `--logger rl-insight`."""

from rl_insight.pipeline.progress import LogHandler

__all__ = ["LogHandler"]
