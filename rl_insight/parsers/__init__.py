"""One module per profiler: bytes of one input to tables.

Another package adds a parser through the entry point group `rl_insight.parsers`.
"""

from rl_insight.parsers.base import Found, Parsed, Parser, Source
from rl_insight.registry import Registry

PARSERS: Registry[Parser] = Registry("cluster parser", "rl_insight.parsers")
PARSERS.register("gmm", "rl_insight.parsers.gmm:PARSER")
PARSERS.register("mstx", "rl_insight.parsers.mstx:PARSER")
PARSERS.register("nvtx", "rl_insight.parsers.nvtx:PARSER")
PARSERS.register("sglang", "rl_insight.parsers.sglang:PARSER")
PARSERS.register("torch", "rl_insight.parsers.torch:PARSER")

__all__ = ["PARSERS", "Found", "Parsed", "Parser", "Source"]
