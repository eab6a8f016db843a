"""What the devices did, from the database of an Ascend capture."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.kernel_names import COMMUNICATION, COMPUTING, MEMORY
from rl_insight.parsers.mstx_capture import FREE, AscendDevice, MstxCapture
from rl_insight.parsers.mstx_ops import DATA_TYPES, call, copies, is_driver, task_class
from rl_insight.parsers.mstx_queries import AscendDatabase
from rl_insight.parsers.op_names import LEFT_OUT
from rl_insight.readers.table_rows import Rows, TableQuery

Take = Callable[[Rows, IntArray, IntArray], None]
"""Takes rows with their starts and durations in ns, all three of one length."""

Load = Callable[[TableQuery, Take], None]

TABLES = frozenset(("TASK", "COMMUNICATION_OP", "OVERLAP_ANALYSIS"))
"""Those that say when the devices were busy; without the others only names are lost."""

# msprof's OverlapAnalysisType, and its names in ENUM_OVERLAP_ANALYSIS_TYPE.
_ANALYSIS: dict[object, int] = {0: COMPUTING, 1: COMMUNICATION, 2: COMMUNICATION, 3: FREE}
_ANALYSIS_NAMES = {
    "COMPUTE": COMPUTING,
    "COMMUNICATION": COMMUNICATION,
    "COMM_NOT_OVERLAP_COMP": COMMUNICATION,
    "FREE": FREE,
}
_UNNAMED = "(unnamed)"
_MOST_COPY_TYPES = 100
# The columns of every question, in this order; what else is asked for stands behind them.
_DEVICE, _NAME = 2, 3


def read(database: AscendDatabase, capture: MstxCapture, load: Load) -> None:
    """Give `capture` all that its devices did.

    `load` asks a table a question, whose first columns are start and end in ns, the device and a
    number of a name, and sends the rows that have a possible time to where they belong.
    """
    if database.needs("TASK", "startNs", "endNs"):
        if (
            database.has("COMPUTE_TASK_INFO", "globalTaskId")
            and database.has("TASK", "globalTaskId")
            and database.is_whole("COMPUTE_TASK_INFO")
        ):
            _computing(database, capture, load)
            _copies(database, capture, load)
        else:
            _by_type(database, capture, load)
    if database.needs("COMMUNICATION_OP", "startNs", "endNs"):
        _communication(database, capture, load)
    if database.needs("OVERLAP_ANALYSIS", "startNs", "endNs", "type"):
        _analysis(database, capture, load)


def join_nameless(capture: MstxCapture) -> None:
    """Give what names no device to the only one that there is, once all was taken."""
    nameless = capture.devices.get(None)
    numbered = [number for number in capture.devices if number is not None]
    if nameless is not None and len(numbered) == 1:
        capture.devices[numbered[0]].absorb(capture.devices.pop(None))


def _computing(database: AscendDatabase, capture: MstxCapture, load: Load) -> None:
    names = capture.names
    codes = {
        number: LEFT_OUT if is_driver(text) else names.code(COMPUTING, text)
        for number, text in database.texts("COMPUTE_TASK_INFO", "name").items()
    }
    # Each task once, whatever stands in the tables: numbers that repeat in both would multiply.
    # CROSS: SQLite goes through the tasks, so that those before a damaged page are found.
    name = database.optional("COMPUTE_TASK_INFO", "name")
    query = TableQuery(
        "TASK",
        f"{_columns(database, 'TASK')}, info.name",
        join="CROSS JOIN (SELECT "
        f"globalTaskId AS task, min({name}) AS name FROM COMPUTE_TASK_INFO GROUP BY globalTaskId) "
        "AS info ON info.task = TASK.globalTaskId",
    )
    unnamed = names.code(COMPUTING, _UNNAMED)
    take = _tasks(capture, codes, unnamed)

    def take_named(rows: Rows, starts: IntArray, durations: IntArray) -> None:
        count = sum(row[_NAME] not in codes for row in rows)
        example = "its name is not in STRING_IDS"
        capture.problems.add("unnamed_kernel", "warning", count, example=example)
        take(rows, starts, durations)

    load(query, take_named)


def _copies(database: AscendDatabase, capture: MstxCapture, load: Load) -> None:
    names = capture.names
    types = {
        number: text for number, text in database.texts("TASK", "taskType").items() if copies(text)
    }
    # Numbers from a database that nobody checked: only whole ones go into the question.
    numbers = [str(number) for number in types if isinstance(number, int)][:_MOST_COPY_TYPES]
    conditions = [f"taskType IN ({', '.join(numbers)})"] if numbers else []
    if database.has("MEMCPY_INFO", "globalTaskId") and database.is_whole("MEMCPY_INFO"):
        conditions.append("globalTaskId IN (SELECT globalTaskId FROM MEMCPY_INFO)")
    if conditions:
        codes = {number: names.code(MEMORY, text) for number, text in types.items()}
        columns = f"{_columns(database, 'TASK')}, {database.optional('TASK', 'taskType')}"
        query = TableQuery("TASK", columns, " OR ".join(conditions))
        load(query, _tasks(capture, codes, names.code(MEMORY, _UNNAMED)))


def _by_type(database: AscendDatabase, capture: MstxCapture, load: Load) -> None:
    """Without (a whole) COMPUTE_TASK_INFO a task's type is all that tells what it does."""
    codes: dict[object, int] = {}
    for number, text in database.texts("TASK", "taskType").items():
        category = task_class(text, text)
        if category is not None:
            codes[number] = capture.names.code(category, text)
    columns = f"{_columns(database, 'TASK')}, {database.optional('TASK', 'taskType')}"
    load(TableQuery("TASK", columns), _tasks(capture, codes, LEFT_OUT))


def _communication(database: AscendDatabase, capture: MstxCapture, load: Load) -> None:
    table = "COMMUNICATION_OP"
    op_names, kinds = database.texts(table, "opName"), database.texts(table, "opType")
    groups = database.texts(table, "groupName")
    data_types = DATA_TYPES | database.enumeration("ENUM_HCCL_DATA_TYPE")
    join = ""
    device = database.optional(table, "deviceId")
    if device == "NULL" and database.has("TASK", "connectionId", "deviceId"):
        # Older versions do not say of which device a call is, but which tasks it launched.
        device = "CAST(launched.deviceId AS INTEGER)"
        join = (
            "LEFT JOIN (SELECT connectionId, min(deviceId) AS deviceId FROM TASK "
            f"GROUP BY connectionId) AS launched ON launched.connectionId = {table}.connectionId"
        )
        if not database.has(table, "connectionId") or not database.is_whole("TASK"):
            device, join = "NULL", ""
    columns = [database.optional(table, name) for name in ("opName", "opType", "groupName")]
    columns += [database.optional(table, name) for name in ("count", "dataType")]
    asked_for = f"{database.times(table)}, {device}, {', '.join(columns)}"
    query = TableQuery(table, asked_for, join=join)

    def take(rows: Rows, starts: IntArray, durations: IntArray) -> None:
        calls = [
            call(
                op_names.get(name),
                groups.get(group),
                count,
                data_types.get(data_type),
                kinds.get(kind),
            )
            for _, _, _, name, kind, group, count, data_type in rows
        ]
        codes = np.array(
            [capture.names.code(COMMUNICATION, one.op) for one in calls], dtype=np.int64
        )
        for owner, own in _owners(capture, rows):
            chosen = [calls[at] for at in np.flatnonzero(own).tolist()]
            owner.add_calls(starts[own], durations[own], chosen, codes[own])

    load(query, take)


def _analysis(database: AscendDatabase, capture: MstxCapture, load: Load) -> None:
    if not _is_finished(database):
        return
    named = database.enumeration("ENUM_OVERLAP_ANALYSIS_TYPE")
    classes = {
        **_ANALYSIS,
        **{
            number: _ANALYSIS_NAMES[name]
            for number, name in named.items()
            if name in _ANALYSIS_NAMES
        },
    }
    codes = {
        number: FREE if category == FREE else capture.names.united(category)
        for number, category in classes.items()
    }
    table = "OVERLAP_ANALYSIS"
    query = TableQuery(table, f"{_columns(database, table)}, {database.optional(table, 'type')}")

    def take(rows: Rows, starts: IntArray, durations: IntArray) -> None:
        numbers = np.array([codes.get(row[_NAME], FREE) for row in rows], dtype=np.int64)
        for device, own in _owners(capture, rows):
            device.add_overlap(starts[own], durations[own], numbers[own])

    load(query, take)


def _is_finished(database: AscendDatabase) -> bool:
    """Whether the analysis is complete: MindStudio Insight notes how far it is with its own."""
    if not database.has("status_info", "key", "value"):
        return True
    query = TableQuery("status_info", "value", "key = 'OVERLAP_ANALYSIS_STATUS'")
    return all(value == "FINISH" for (value,) in database.rows(query))


def _columns(database: AscendDatabase, table: str) -> str:
    """Start, end and device, with which every question about a device begins."""
    return f"{database.times(table)}, {database.optional(table, 'deviceId')}"


def _tasks(capture: MstxCapture, codes: Mapping[object, int], default: int) -> Take:
    """Gives tasks to their device, by the numbers of their names."""

    def take(rows: Rows, starts: IntArray, durations: IntArray) -> None:
        numbers = np.array([codes.get(row[_NAME], default) for row in rows], dtype=np.int64)
        for device, own in _owners(capture, rows):
            device.add_tasks(starts[own], durations[own], numbers[own])

    return take


def _owners(
    capture: MstxCapture, rows: Rows
) -> Iterator[tuple[AscendDevice, npt.NDArray[np.bool_]]]:
    """Each device among `rows`, with which of them are its own."""
    numbers = dict.fromkeys(row[_DEVICE] for row in rows)
    device_of = {number: capture.device(count_of(number)) for number in numbers}
    # Many numbers may be of one device: the unknown one.
    order: dict[int, int] = {}
    slots = {n: order.setdefault(id(device), len(order)) for n, device in device_of.items()}
    owners = np.array([slots[row[_DEVICE]] for row in rows], dtype=np.int64)
    for at, device in {slots[number]: device for number, device in device_of.items()}.items():
        yield device, owners == at
