"""What an nsys export calls its tables and its kinds of events: the same in all of its forms."""

from typing import Final

STRINGS: Final = "StringIds"
RANGES: Final = "NVTX_EVENTS"
DETAILS: Final = "ANALYSIS_DETAILS"
SESSION: Final = "TARGET_INFO_SESSION_START_TIME"
CAPTURE: Final = "META_DATA_CAPTURE"
SYSTEM: Final = "TARGET_INFO_SYSTEM_ENV"
EXPORT: Final = "META_DATA_EXPORT"
KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"

# In the order in which they are best read: what says how to take the rest comes first.
TABLES: Final = (
    DETAILS,
    SESSION,
    STRINGS,
    CAPTURE,
    SYSTEM,
    EXPORT,
    RANGES,
    KERNEL,
    MEMCPY,
    MEMSET,
    GRAPH,
)

# NVTX event types (ENUM_NSYS_EVENT_TYPE): push/pop and start/end ranges, recorded and imported from
# .nvtxt files. All others are marks, unmatched halves, categories and names of things.
RANGE_KINDS: Final = (59, 60, 70, 71)
DOMAIN_KIND: Final = 75
