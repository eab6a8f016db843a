"""Every key of the configuration, defined once: name, default, meaning, values and flag.

Validation, the JSON schema, the documentation and the command line's flags all come from these
structures (`rl_insight.config` is the way to use them).
"""

from typing import Annotated

import msgspec

from rl_insight.config_kinds import (
    Kind,
    choice,
    identity_kind,
    name_kind,
    names_kind,
    number,
    numbers_kind,
    path_kind,
    switch,
    text_kind,
    whole,
)

PRESETS = ("all", "heatmap", "timeline")


def _key(description: str, kind: Kind, flag: str | None = None) -> msgspec.Meta:
    return msgspec.Meta(description=description, extra={"kind": kind, "flag": flag})


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the configuration; its fields are keys or further sections."""


Numbers = Annotated[
    str | None,
    _key("Draw only these steps.", numbers_kind("steps such as `1`, `1,2` or `1-3`", None)),
]
Roles = Annotated[
    str | None, _key("Draw only these roles, by the raw or the canonical name.", names_kind())
]


class Input(Section, frozen=True):
    """What is read."""

    path: Annotated[
        str | None,
        _key(
            "The folder that the profilers left behind. Required.",
            path_kind("folder"),
            "--input-path",
        ),
    ] = None
    type: Annotated[
        str,
        _key(
            "Kept for compatibility; it limits nothing, databases are read too.",
            choice("multi_json"),
            "--input-type",
        ),
    ] = "multi_json"
    rank_list: Annotated[
        str,
        _key(
            "Read and draw only these ranks, as the producer numbers them.",
            numbers_kind("`all`, or ranks such as `0,1,4-7`", "all"),
            "--rank-list",
        ),
    ] = "all"
    identity: Annotated[
        list[str],
        _key(
            "How to tell role, rank, step, replica and host from a path; beats everything else.",
            identity_kind(),
        ),
    ] = msgspec.field(default_factory=list)
    settle: Annotated[
        int | float,
        _key(
            "What changed less than so many seconds ago is still being written: it is drawn as far "
            "as it goes and marked. 0 takes everything for final.",
            number(0, 86_400),
            "--settle",
        ),
    ] = 1


class Output(Section, frozen=True):
    """Where it goes."""

    path: Annotated[
        str,
        _key(
            "The folder for everything that is written; for a heatmap it may name the picture.",
            path_kind("folder"),
            "--output-path",
        ),
    ] = "output"
    live: Annotated[
        bool,
        _key(
            "Pages load themselves again when `rl-insight watch`, which sets this, has drawn anew.",
            switch(),
        ),
    ] = False


class TimelineParser(Section, frozen=True):
    """Which profiler's files the timeline is made of."""

    type: Annotated[
        str,
        _key(
            "The profiler; `auto` looks at the files.",
            name_kind("mstx", "torch", "nvtx", "auto"),
            "--profiler-type",
        ),
    ] = "mstx"
    step: Numbers = None
    role: Roles = None
    range_depth: Annotated[
        int, _key("How deep annotations below a stage are kept; 0 keeps stages only.", whole(0, 64))
    ] = 2


class TimelineVisualizer(Section, frozen=True):
    """How the timeline is drawn."""

    type: Annotated[
        str, _key("The page, the picture, or both.", names_kind("html", "png"), "--vis-type")
    ] = "html"
    width: Annotated[int, _key("Width of the PNG before scaling.", whole(200, 20_000))] = 2000
    scale: Annotated[
        int | float,
        _key("The PNG is width × scale pixels wide, drawn at 100 × scale dpi.", number(0.1, 20)),
    ] = 2


class Timeline(Section, frozen=True):
    """The timeline of all ranks and stages."""

    parser: TimelineParser = TimelineParser()
    visualizer: TimelineVisualizer = TimelineVisualizer()


class HeatmapParser(Section, frozen=True):
    """Which records of expert load the heatmap is made of."""

    type: Annotated[
        str,
        _key(
            "msprobe's group lists, SGLang's expert distribution recorder, or both.",
            names_kind("gmm", "sglang"),
        ),
    ] = "gmm"
    step: Numbers = None
    role: Roles = None
    group_list_type: Annotated[
        str,
        _key(
            "What a group list holds; wins over the dump. `auto`: the dump, then the numbers.",
            choice("auto", "counts", "cumsum", "pairs"),
        ),
    ] = "auto"
    ep_size: Annotated[
        int | None,
        _key("Expert-parallel size, when the dump does not tell it.", whole(1, 1_000_000)),
    ] = None


class HeatmapVisualizer(Section, frozen=True):
    """How the heatmap is drawn."""

    type: Annotated[
        str,
        _key("The picture, the page, or both.", names_kind("gmm_heatmap", "gmm_heatmap_html")),
    ] = "gmm_heatmap"
    dpi: Annotated[int, _key("Resolution of the PNG.", whole(10, 2_400))] = 200
    cmap: Annotated[
        str,
        _key(
            "The colour map; darker is more, a name with `_r` is turned round.",
            text_kind("name of a matplotlib colour map"),
        ),
    ] = "viridis"
    gmm_per_layer: Annotated[
        int | str,
        _key("Grouped matmuls in one layer's forward pass.", whole(1, 1_000, "auto")),
    ] = 3
    phase: Annotated[
        str,
        _key(
            "The part of a step that is drawn.", choice("forward", "recompute", "backward", "all")
        ),
    ] = "forward"
    micro_batch: Annotated[
        str, _key("The micro-batches that are drawn.", choice("first", "all"))
    ] = "first"


class Heatmap(Section, frozen=True):
    """The heatmap of expert load."""

    parser: HeatmapParser = HeatmapParser()
    visualizer: HeatmapVisualizer = HeatmapVisualizer()


class Parse(Section, frozen=True):
    """How the work is cut into jobs."""

    ranks_per_job: Annotated[
        int | str,
        _key(
            "Inputs read by one job. `auto`: one trace, or several small ones where more than 64 "
            "are new; the group lists of 64 ranks. What was packed once stays so.",
            whole(1, 1_000_000, "auto"),
        ),
    ] = "auto"


class Run(Section, frozen=True):
    """How a run ends."""

    strict: Annotated[
        bool,
        _key(
            "End with exit code 3 when an input was damaged, empty or failed.", switch(), "--strict"
        ),
    ] = False


class Pipeline(Section, frozen=True):
    """Kept for compatibility."""

    type: Annotated[
        str,
        _key(
            "The only pipeline: this workflow.", choice("OfflineInsightPipeline"), "--pipeline-type"
        ),
    ] = "OfflineInsightPipeline"


class Config(Section, frozen=True):
    """The configuration of one run, complete and valid."""

    preset: Annotated[
        str,
        _key(
            "What is drawn. Unset: `heatmap` if any `heatmap.*` key is given, else `timeline`.",
            choice(*PRESETS),
            "--preset",
        ),
    ] = "timeline"
    input: Input = Input()
    output: Output = Output()
    timeline: Timeline = Timeline()
    heatmap: Heatmap = Heatmap()
    parse: Parse = Parse()
    run: Run = Run()
    pipeline: Pipeline = Pipeline()
