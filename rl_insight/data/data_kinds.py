"""The kinds of data that can be checked, by their documented names."""

from enum import StrEnum


class DataEnum(StrEnum):
    """What some data claims to be: a folder of captures, a log, or a table of pandas."""

    MULTI_JSON_MSTX = "multi_json_mstx"
    """A folder of Ascend captures (torch_npu): text or database."""
    MULTI_JSON_TORCH = "multi_json_torch"
    """A folder of PyTorch profiler traces."""
    MULTI_JSON_NVTX = "multi_json_nvtx"
    """A folder of exports of Nsight Systems."""
    ASCEND_MEMORY = "ascend_memory"
    """A folder of Ascend captures with `operator_memory.csv`."""
    VERL_LOG = "verl_log"
    """One training log of VeRL."""
    GMM_DATA = "gmm_data"
    """A folder of msprobe dumps with group lists."""
    SUMMARY_EVENT = "summary_event"
    """The DataFrame of stages, as `summary_events` gives it."""
    GMM_SUMMARY = "gmm_summary"
    """The DataFrame of expert load, as `gmm_summary` gives it."""
    MEMORY_SUMMARY = "memory_summary"
    """A DataFrame of memory allocations."""
    UNKNOWN = "unknown"
    """Anything: there is no rule for it."""


FOLDER_KINDS = (
    DataEnum.MULTI_JSON_MSTX,
    DataEnum.MULTI_JSON_TORCH,
    DataEnum.MULTI_JSON_NVTX,
    DataEnum.ASCEND_MEMORY,
    DataEnum.GMM_DATA,
)
"""The kinds that are a folder of captures."""
