import string
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.data.names import NOTHING, NameFacts, dump_facts, facts, folder_facts, root_label

NS = 1771730291744166997  # as vLLM writes it
STAMP = 20260814122731089  # as verl and torch_npu write it


# One real name of every generation, with what a person reads in it.
TRAINER_NAMES = [
    ("prof_rank-0.json.gz", NameFacts("verl-A/B", rank=0)),
    ("actor_prof_rank-3.json.gz", NameFacts("verl-A/B", "actor", rank=3)),
    (
        "actor_rollout_ref_prof_rank-3_12345_20260301101112123.json.gz",
        NameFacts("verl-A/B", "actor_rollout_ref", rank=3, pid=12345, time=20260301101112123),
    ),
    ("prof_rank-1_031904.json.gz", NameFacts("verl-A/B", rank=1, time=31904)),
    (
        f"rank0_pid7_{STAMP}.json.gz",
        NameFacts("verl-C/D", rank=0, pid=7, time=STAMP),
    ),
    (
        f"actor_e2e_rank5-of-16_tp1-pp0-dp2-cp0_pid4711_{STAMP}_cycle2.json.gz",
        NameFacts(
            "verl-C/D",
            "actor",
            "e2e",
            rank=5,
            world_size=16,
            tp=1,
            pp=0,
            dp=2,
            cp=0,
            pid=4711,
            time=STAMP,
            window="cycle2",
        ),
    ),
    (
        f"actor-rollout-ref_actor-update_step1_rank0-of-16_tp0-pp0-dp0_pid10256_{STAMP}.json.gz",
        NameFacts(
            "verl-C/D",
            "actor-rollout-ref",
            "actor-update",
            rank=0,
            world_size=16,
            tp=0,
            pp=0,
            dp=0,
            step=1,
            pid=10256,
            time=STAMP,
        ),
    ),
    (
        f"actor_actor-update_step12_rank3_pid9_{STAMP}_mb0-3.json.gz",
        NameFacts(
            "verl-C/D",
            "actor",
            "actor-update",
            rank=3,
            step=12,
            pid=9,
            time=STAMP,
            window="mb0-3",
        ),
    ),
    (
        f"actor_actor-update_step12_rank3_pid9_{STAMP}_mb4.json.gz",
        NameFacts(
            "verl-C/D", "actor", "actor-update", rank=3, step=12, pid=9, time=STAMP, window="mb4"
        ),
    ),
    (
        # `actor_train` is a documented role too, but here it is the worker and the scope.
        f"actor_train_step7_rank0-of-8_pid1_{STAMP}_part1.json.gz",
        NameFacts(
            "verl-C/D",
            "actor",
            "train",
            rank=0,
            world_size=8,
            step=7,
            pid=1,
            time=STAMP,
            window="part1",
        ),
    ),
    (
        # A separate ref worker's whole step: verl gives it no scope.
        f"ref_step7_rank0-of-8_pid1_{STAMP}.json.gz",
        NameFacts("verl-C/D", "ref", rank=0, world_size=8, step=7, pid=1, time=STAMP),
    ),
    (
        f"value-model_train-batch_step7_rank0_pid1_{STAMP}.json.gz",
        NameFacts("verl-C/D", "value-model", "train-batch", rank=0, step=7, pid=1, time=STAMP),
    ),
    (
        f"compute-log-prob_step3_rank2_pid1_{STAMP}.json.gz",
        NameFacts("verl-C/D", None, "compute-log-prob", rank=2, step=3, pid=1, time=STAMP),
    ),
    (
        f"actor_ref_compute_log_prob_step3_rank2_pid1_{STAMP}.json.gz",
        NameFacts("verl-C/D", "actor", "ref_compute_log_prob", rank=2, step=3, pid=1, time=STAMP),
    ),
    (
        f"actor_train_stepNone_rank2_pid1_{STAMP}.json.gz",
        NameFacts("verl-C/D", "actor", "train", rank=2, pid=1, time=STAMP),
    ),
]

ENGINE_NAMES = [
    (
        f"dp0_pp1_tp2_dcp0_ep3_rank6.{NS}.pt.trace.json.gz",
        NameFacts("vllm", rank=6, rank_is_local=True, tp=2, pp=1, dp=0, ep=3, time=NS),
    ),
    (
        f"my_run_dp0_pp0_tp1_dcp0_ep1_rank1.{NS}.pt.trace.json.gz",
        NameFacts("vllm", "my_run", rank=1, rank_is_local=True, tp=1, pp=0, dp=0, ep=1, time=NS),
    ),
    (
        f"vllm-2f9c1-rank-3.{NS}.pt.trace.json.gz",
        NameFacts("vllm", "vllm-2f9c1", rank=3, rank_is_local=True, time=NS),
    ),
    (
        f"node1_372640.async_llm.{NS}.pt.trace.json.gz",
        NameFacts("vllm", host="node1", pid=372640, time=NS),
    ),
    (
        f"huawei_372640.{NS}.pt.trace.json.gz",
        NameFacts("tensorboard", host="huawei", pid=372640, time=NS),
    ),
    (
        f"gpu-3.cluster_a_99.{NS}.pt.trace.json",
        NameFacts("tensorboard", host="gpu-3.cluster_a", pid=99, time=NS),
    ),
    (
        "1771730291.744166-TP-1.trace.json.gz",
        NameFacts("sglang", rank=1, rank_is_local=True, tp=1, time=1771730291744166000),
    ),
    (
        "warm-up-1771730291.5-TP-0-EP-1-DECODE.trace.json.gz",
        NameFacts(
            "sglang", "warm-up", rank=0, rank_is_local=True, tp=0, ep=1, time=1771730291500000000
        ),
    ),
    (
        # How DP and PP ranks count within the engine depends on its layout.
        "1771730291-TP-1-DP-1-PP-0.trace.json.gz",
        NameFacts("sglang", rank_is_local=True, tp=1, dp=1, pp=0, time=1771730291000000000),
    ),
    (
        "expert_distribution_recorder_1771730291.5_3.pt",
        NameFacts("sglang", rank=3, rank_is_local=True, time=1771730291500000000),
    ),
    (
        f"rollout-replica4-globalrank8_vllm-2f9c1-rank-0.{NS}.pt.trace.json.gz",
        NameFacts(
            "vllm",
            "rollout-replica4",
            "rollout-replica4",
            rank=0,
            rank_is_local=True,
            global_rank=8,
            replica=4,
            time=NS,
        ),
    ),
    (
        f"rollout-replica0_huawei_372640.{NS}.pt.trace.json.gz",
        NameFacts(
            "tensorboard",
            "rollout-replica0",
            "rollout-replica0",
            rank_is_local=True,
            replica=0,
            host="huawei",
            pid=372640,
            time=NS,
        ),
    ),
    (
        "rollout-replica1-globalrank3_1771730291.5-TP-1.trace.json.gz",
        NameFacts(
            "sglang",
            "rollout-replica1",
            "rollout-replica1",
            rank=1,
            rank_is_local=True,
            global_rank=3,
            tp=1,
            replica=1,
            time=1771730291500000000,
        ),
    ),
]

OTHER_NAMES = [
    (
        f"my_host-1.example_4711_{STAMP}_ascend_pt",
        NameFacts("npu", host="my_host-1.example", pid=4711, time=STAMP),
    ),
    (
        f"dp0_pp0_tp0_dcp0_ep0_rank1_4711_{STAMP}_ascend_pt",
        NameFacts(
            "npu",
            rank=1,
            rank_is_local=True,
            tp=0,
            pp=0,
            dp=0,
            ep=0,
            pid=4711,
            time=STAMP,
        ),
    ),
    (
        f"dp0_pp0_tp0_dcp0_ep0_rank1_{STAMP}_ascend_pt",
        NameFacts("npu", rank=1, rank_is_local=True, tp=0, pp=0, dp=0, ep=0, time=STAMP),
    ),
    # Only ASCII digits are a number.
    (f"host_²_{STAMP}_ascend_pt", NameFacts("npu", host="host_²", time=STAMP)),
    (f"host_٣_{STAMP}_ascend_pt", NameFacts("npu", host="host_٣", time=STAMP)),
    ("rank0_ascend_pt", NameFacts("npu", rank=0)),
    ("xxx_ascend_pt", NameFacts("npu")),
    ("20260526_085155_ascend_pt", NameFacts("npu", time=20260526085155)),
    ("ascend_pytorch_profiler_5.db", NameFacts("npu", rank=5)),
    (
        f"h_1_{STAMP}_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
        NameFacts("npu", host="h", pid=1, time=STAMP),
    ),
    (
        f"h_1_{STAMP}_ascend_pt/profiler_info_2.json",
        NameFacts("npu", rank=2, host="h", pid=1, time=STAMP),
    ),
    ("worker_process_70000.jsonl", NameFacts("nsys", pid=70000)),
    ("worker_process_70000.2.jsonl", NameFacts("nsys", pid=70000, window="range2")),
    ("worker_process_70000.2_pqtdir", NameFacts("nsys", pid=70000, window="range2")),
    (
        "actor_node3.example.org_worker_process_70000.1.sqlite",
        NameFacts("nsys", "actor", host="node3.example.org", pid=70000, window="range1"),
    ),
    (
        "actor_rollout_ref_node_3_worker_process_7.nsys-rep",
        NameFacts("nsys", "actor_rollout_ref", host="node_3", pid=7),
    ),
    ("node_3_worker_process_7.jsonl", NameFacts("nsys", host="node_3", pid=7)),
    (
        "rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
        NameFacts("generic", rank=34, time=715105241),
    ),
    (
        "worker0_step_12.1694128201545.pt.trace.json",
        NameFacts("generic", rank=0, step=12, time=1694128201545),
    ),
    ("sampled_rank-1.json.gz", NameFacts("generic", rank=1)),
    ("mtia_inference_rank_0.json.gz", NameFacts("generic", rank=0)),
    ("Rank12.json", NameFacts("generic", rank=12)),
    ("trace.rank3-of-8.json", NameFacts("generic", rank=3, world_size=8)),
    ("torch_memory_rank3_pid44.pickle", NameFacts("generic", rank=3, pid=44)),
]


@pytest.mark.parametrize(("name", "told"), TRAINER_NAMES)
def test_a_trainer_capture_of_every_verl_release_tells_what_its_name_holds(
    name: str, told: NameFacts
) -> None:
    assert facts(name) == told


@pytest.mark.parametrize(("name", "told"), ENGINE_NAMES)
def test_a_rollout_engine_capture_tells_its_rank_inside_the_engine(
    name: str, told: NameFacts
) -> None:
    assert facts(name) == told


@pytest.mark.parametrize(("name", "told"), OTHER_NAMES)
def test_ascend_nsys_and_hand_made_names_tell_what_they_hold(name: str, told: NameFacts) -> None:
    assert facts(name) == told


@pytest.mark.parametrize(
    ("name", "told"),
    [pair for pair in TRAINER_NAMES + ENGINE_NAMES if pair[0].endswith(".json.gz")],
)
def test_an_unpacked_file_tells_the_same_as_the_packed_one(name: str, told: NameFacts) -> None:
    assert facts(f"somewhere/{name.removesuffix('.gz')}") == told


@pytest.mark.parametrize(
    "name",
    [
        "rank_not_found.json.gz",
        "graph_execution.json.gz",
        "trace_view.json",
        "r0-abc.pt.trace.json.gz",  # sglang wrote r0 for every rank
        "tp_rank_1.json",
        "local_rank0.json",
        "frank3.json",
        "crank-7.json",
        "rank3rd.json",
        "rank٣.json",
        "",
    ],
)
def test_a_name_without_a_rank_of_its_own_tells_nothing(name: str) -> None:
    assert facts(name) == NOTHING


def test_a_global_rank_is_not_taken_for_the_rank() -> None:
    assert facts("x_globalrank8.json") == NameFacts("generic", global_rank=8)


def test_a_dumped_tensor_is_named_after_an_api_and_tells_nothing() -> None:
    assert facts("rank0/dump_tensor_data/Module.rank_3.forward.0.kwargs.group_list.pt") == NOTHING


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("rank2147483647.json", "rank", 2147483647),
        ("rank2147483648.json", "rank", None),
        (f"rank{'9' * 5000}.json", "rank", None),
        (f"x_rank0_pid{2**63 - 1}_{STAMP}.json", "pid", 2**63 - 1),
        (f"x_rank0_pid{2**63}_{STAMP}.json", "pid", None),
        (f"x_step{'1' * 30}_rank0_pid1_{STAMP}.json", "step", None),
        ("rollout-replica99999999999_x.json", "replica", None),
        (f"worker_process_{'1' * 40}.jsonl", "pid", None),
    ],
)
def test_numbers_that_no_table_can_hold_are_passed_over(
    name: str, field: str, value: int | None
) -> None:
    assert getattr(facts(name), field) == value


@pytest.mark.parametrize(
    ("path", "root", "told"),
    [
        # verl, one folder per role
        ("actor_update/prof_rank-0.json.gz", "save", NameFacts(role="actor_update")),
        ("e2e/host_1_2_ascend_pt", "save", NameFacts(role="e2e")),
        ("my_stage/prof_rank-0.json.gz", "save", NameFacts(role="my_stage")),
        # verl v0.5 to v0.7.0, NPU: a folder per step above it
        ("3/actor_update/host_1_2_ascend_pt", "save", NameFacts(role="actor_update", step=3)),
        ("save/3/my_stage/host_1_2_ascend_pt", "up", NameFacts(role="my_stage", step=3)),
        ("step_3/actor_update/x.json", "save", NameFacts(role="actor_update", step=3)),
        ("step3/my_stage/x.json", "save", NameFacts(role="my_stage", step=3)),
        ("global_step_100/my_stage/x.json", "save", NameFacts(role="my_stage", step=100)),
        # the input root itself
        ("x.json", "save", NOTHING),
        ("x.json", "actor_update", NameFacts(role="actor_update")),
        ("x.json", "e2e", NameFacts(role="e2e")),
        (
            "x.json",
            "agent_loop_rollout_replica_2",
            NameFacts(role="agent_loop_rollout_replica_2", replica=2),
        ),
        (
            "node3/x.json",
            "teacher_rollout_replica_2",
            NameFacts(role="teacher_rollout_replica_2", replica=2),
        ),
        ("actor_update/x.json", "step_4", NameFacts(role="actor_update", step=4)),
        ("x.json", "20260814", NOTHING),
        # folders that are a save_path
        ("torch_profile/x.json", "save", NOTHING),
        ("outputs/profile/x.json", "run", NOTHING),
        ("mstx_data/mstx_profile/actor_update/x_ascend_pt", "c", NameFacts(role="actor_update")),
        ("2026-08-14_12-27-31/x.json", "save", NOTHING),
        ("20260814_122731/x.json", "save", NOTHING),
        ("step_3/x.json", "save", NameFacts(step=3)),
        ("step_unknown/x.json", "save", NOTHING),
        ("3/x.json", "save", NOTHING),
        ("2026/08/14/my_stage/x.json", "save", NameFacts(role="my_stage")),
        ("20260814/my_stage/x.json", "save", NameFacts(role="my_stage")),
        # a stage is a stage, whatever lies between it and the file
        ("actor_update/node3/x.json", "save", NameFacts(role="actor_update")),
        ("actor_update/step_3/x.json", "save", NameFacts(role="actor_update", step=3)),
        # a folder inside a capture is not above it
        (
            "actor_update/x_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
            "save",
            NameFacts(role="actor_update"),
        ),
        (
            "my_stage/x_ascend_pt/PROF_000001_20260814122731_ABC/msprof_1.db",
            "save",
            NameFacts(role="my_stage"),
        ),
        # msprobe, as documented, as verl really nests it, and alone
        (
            "step_1/actor_update/rank0/dump_tensor_data/NPU.x.0.forward.kwargs.group_list.pt",
            "save",
            NameFacts(role="actor_update", step=1, rank=0),
        ),
        (
            "step_2/actor_update/step0/rank3/dump_tensor_data/NPU.x.pt",
            "save",
            NameFacts(role="actor_update", step=2, rank=3),
        ),
        (
            "step_2/my_stage/step0/rank3/dump_tensor_data/NPU.x.pt",
            "save",
            NameFacts(role="my_stage", step=2, rank=3),
        ),
        (
            "my_stage/step0/rank3/dump_tensor_data/NPU.x.pt",
            "step_2",
            NameFacts(role="my_stage", step=2, rank=3),
        ),
        (
            "step_unknown/compute_values/step0/rank/dump_tensor_data/NPU.x.pt",
            "save",
            NameFacts(role="compute_values"),
        ),
        ("step5/proc77/dump_tensor_data/NPU.x.pt", "save", NameFacts(step=5, pid=77)),
        ("step5/rank1/dump_tensor_data/NPU.x.pt", "save", NameFacts(step=5, rank=1)),
        ("rank7/my_stage/rank1/x.json", "save", NameFacts(role="my_stage", rank=1)),
        # replicas
        (
            "agent_loop_rollout_replica_1/x.json",
            "save",
            NameFacts(role="agent_loop_rollout_replica_1", replica=1),
        ),
        (
            "reward_model/agent_loop_rollout_replica_1/x.json",
            "save",
            NameFacts(role="reward_model/agent_loop_rollout_replica_1", replica=1),
        ),
        (
            "step_2/agent_loop_rollout_replica_1/x.json",
            "save",
            NameFacts(role="agent_loop_rollout_replica_1", replica=1, step=2),
        ),
        (
            "step_2/reward_model/agent_loop_rollout_replica_1/x.json",
            "save",
            NameFacts(role="reward_model/agent_loop_rollout_replica_1", replica=1, step=2),
        ),
        (
            "torch_profile/agent_loop_rollout_replica_1/x.json",
            "save",
            NameFacts(role="agent_loop_rollout_replica_1", replica=1),
        ),
        (
            "agent_loop_rollout_replica_1/x.json",
            "step_2",
            NameFacts(role="agent_loop_rollout_replica_1", replica=1, step=2),
        ),
        (
            "agent_loop_rollout_replica_1/x.json",
            "e2e",
            NameFacts(role="agent_loop_rollout_replica_1", replica=1),
        ),
    ],
)
def test_folders_tell_role_step_replica_and_rank(path: str, root: str, told: NameFacts) -> None:
    assert folder_facts(path, root) == told


@pytest.mark.parametrize(
    ("root", "label"),
    [
        ("/data/run", ""),
        ("/data/run/actor_update", "actor_update"),
        ("/data/run/step_4", "step_4"),
        ("/data/run/step_4/actor_update", "step_4/actor_update"),
        ("/data/run/step_4/notes", ""),
        ("/data/run/step_4/my_stage/step0", "step_4/my_stage/step0"),
        ("/data/run/step_4/my_stage/rank2", "step_4/my_stage/rank2"),
        (
            "/data/run/step_unknown/my_stage/step0/rank/dump_tensor_data",
            "step_unknown/my_stage/step0/rank/dump_tensor_data",
        ),
        ("/data/run/step5/rank2/dump_tensor_data", "step5/rank2/dump_tensor_data"),
        ("/data/run/actor_update/rank2", "actor_update/rank2"),
        ("/data/run/rank2", "rank2"),
        ("/", ""),
    ],
)
def test_an_input_inside_a_dump_is_called_by_all_that_says_whose_it_is(
    root: str, label: str
) -> None:
    assert root_label(Path(root)) == label


def test_a_hand_made_parent_does_not_hide_the_only_folder_that_could_be_a_role() -> None:
    # Each of these has one word more than folders for profiles in general.
    for folder in ("trace_filter", "memory_data", "actor_profile", "dlrm-8-ranks"):
        assert folder_facts(f"{folder}/x.json").role == folder


HOSTILE = st.text(max_size=200) | st.text("_-./rankdpteps0123456789TP", max_size=200)
PIECES = [
    *("step_1/", "step_1/a/", "rank0/", "dump_tensor_data/"),
    *("_rank-1", "rank1", "-TP-1", "-TP-1-DP-1", "_dp0_pp0_tp0_ep0", "_1", ".1", "_", "-", "."),
    *("prof_rank-1_", "worker_process_1.", "_pid1", "step1/", "/", "a/", "1/", "_ascend_pt", "0"),
    *("actor_", "globalrank1_", "tp0-", "Jan_01_", "replica_1", "rollout-replica1_", "x"),
]
ENDS = ["", ".json.gz", f".{NS}.pt.trace.json.gz", "_ascend_pt", f"_pid1_{STAMP}.json", "!", "/x"]


@settings(deadline=None)
@given(HOSTILE, HOSTILE)
def test_no_name_makes_the_reader_fail(path: str, root: str) -> None:
    for told in (facts(path), folder_facts(path, root)):
        for field in fields(told):
            value = getattr(told, field.name)
            if isinstance(value, int):
                assert 0 <= value < 2**63, field.name


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("piece", PIECES)
def test_a_name_of_ten_thousand_characters_costs_no_time(piece: str, end: str) -> None:
    # Linear time is a millisecond here; backtracking would never come to an end.
    path = piece * (10_000 // len(piece)) + end
    assert facts(path) == facts(path)
    assert folder_facts(path, path) == folder_facts(path, path)
    assert dump_facts(path) == dump_facts(path)


@settings(deadline=None)
@given(
    st.from_regex(r"[0-9A-Za-z.=+-]{1,12}", fullmatch=True).filter(lambda s: s[:4] != "step"),
    st.integers(0, 10**6),
    st.integers(0, 10**5),
    st.integers(1, 10**5),
    st.sampled_from(["", "_mb0", "_mb3-9", "_part2"]),
)
def test_what_verl_puts_into_a_name_comes_out_of_it(
    worker: str, step: int, rank: int, world: int, window: str
) -> None:
    name = f"{worker}_actor-update_step{step}_rank{rank}-of-{world}_pid5_{STAMP}{window}.json.gz"
    told = facts(name)
    assert told == NameFacts(
        "verl-C/D",
        worker,
        "actor-update",
        rank=rank,
        world_size=world,
        step=step,
        pid=5,
        time=STAMP,
        window=window[1:] or None,
    )


@settings(deadline=None)
@given(st.text(string.ascii_letters + "_.-", min_size=1, max_size=20), st.integers(0, 10**6))
def test_a_host_name_of_any_shape_comes_out_of_an_ascend_folder(host: str, pid: int) -> None:
    told = facts(f"{host}_{pid}_{STAMP}_ascend_pt")
    assert (told.host, told.pid, told.time) == (host, pid, STAMP)


@pytest.mark.parametrize(
    "folder",
    [
        *("node0", "host3", "worker-1", "Node_12", "server7", "pod-0"),
        *("gpu-node0", "npu-node1.cluster.local", "dgx-host02", "10.0.0.3", "ip-10-0-0-3.ec2"),
    ],
)
def test_a_folder_called_like_a_host_is_no_role(folder: str) -> None:
    assert folder_facts(f"{folder}/trace.json.gz").role is None
    assert folder_facts(f"actor_update/{folder}/trace.json.gz").role == "actor_update"


@pytest.mark.parametrize(
    "folder",
    ["node", "my_stage", "reward_worker", "worker_pool", "actor_worker_0", "v1.2.3", "ip-1"],
)
def test_what_only_resembles_a_host_may_be_a_role(folder: str) -> None:
    assert folder_facts(f"{folder}/trace.json.gz").role == folder
