"""The part of the configuration that the merge depends on, as the plan hands it to the job."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rl_insight import config as configuration
from rl_insight.data import identity
from rl_insight.data.identity import UserRules
from rl_insight.pipeline.discovery import Filters

_NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """The part of the configuration that the merge depends on."""

    rules: UserRules
    filters: Filters
    root_name: str
    """The name of the input folder: it may be a role's own folder."""
    heatmap_filters: Filters = _NO_FILTERS
    """As `filters`, for expert loads."""
    presets: tuple[str, ...] = ("timeline",)
    """What is drawn from the merged tables."""


def merge_options(text: str) -> MergeOptions:
    """What `Run.merge_options` wrote, for the merge job."""
    values = json.loads(text)
    return MergeOptions(
        identity.compile_rules(values["input.identity"]),
        filters_of(values, "timeline"),
        values["root_name"],
        filters_of(values, "heatmap"),
        tuple(values["presets"]),
    )


def filters_of(values: Mapping[str, Any], preset: str) -> Filters:
    """The filters of a preset, out of the `values` of dotted configuration keys."""
    role = values.get(f"{preset}.parser.role")
    return Filters(
        configuration.parse_ranks(values["input.rank_list"]),
        configuration.parse_steps(values.get(f"{preset}.parser.step")),
        frozenset(configuration.parse_names(role)) if role else None,
    )
