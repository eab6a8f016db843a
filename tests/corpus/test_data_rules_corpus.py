"""Real captures satisfy the rules: what a profiler really writes is no error."""

from pathlib import Path

import pandas as pd
import pytest

from rl_insight.data import DataChecker, DataValidationError

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
SAMPLES = CORPUS / "other" / "upstream-samples"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real files is not here")


@pytest.mark.parametrize(
    ("kind", "folder"),
    [
        ("multi_json_mstx", "mstx/rl-insight/mstx_data/mstx_profile"),
        ("multi_json_torch", "torch/rl-insight/torch_data/torch_profile"),
        ("multi_json_nvtx", "nvtx/rl-insight/nvtx_data/nvtx_profile"),
        ("gmm_data", "gmm/rl-insight/gmm_data"),
        ("ascend_memory", "other/upstream-samples/memory_data"),
        ("torch", "torch/dlrm-8-ranks"),
    ],
)
def test_the_documented_samples_have_nothing_to_say(kind: str, folder: str) -> None:
    kind = "multi_json_torch" if kind == "torch" else kind
    assert DataChecker(kind, CORPUS / folder).run() == []


@pytest.mark.parametrize(
    ("kind", "folder"), [("multi_json_mstx", "mstx"), ("multi_json_torch", "torch")]
)
def test_all_real_captures_pass(kind: str, folder: str) -> None:
    assert {one.severity for one in DataChecker(kind, CORPUS / folder).run()} <= {
        "info",
        "warning",
    }


def test_of_real_exports_only_the_one_without_ranges_is_an_error() -> None:
    findings = DataChecker("multi_json_nvtx", CORPUS / "nvtx").findings()
    errors = {one.path for one in findings if one.severity == "error"}
    assert errors == {"real/nsight-2025.5.2.sqlite"}
    assert not any("canary" in str(one) for one in findings)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bad_exist_empty_verl", "empty"),
        ("bad_exist_unbranded", "verl"),
        ("bad_keys_startup_only_verl", "response_length/mean"),
        ("bad_keys_five_legacy_metrics_verl", "actor/entropy"),
        ("bad_keys_no_training_step_tokens_verl", "training/global_step, training/epoch"),
        ("bad_keys_no_entropy_verl", "actor/entropy"),
    ],
)
def test_the_documented_bad_logs_fail(name: str, words: str) -> None:
    with pytest.raises(DataValidationError, match=words):
        DataChecker("verl_log", SAMPLES / "verl_data" / f"{name}.log").run()


def test_the_documented_good_log_and_frame_pass() -> None:
    log = SAMPLES / "verl_data" / "good_minimal_verl.log"
    assert DataChecker("verl_log", log).run() == []
    sample = SAMPLES / "summary_event_data" / "summary_event_dataframe_sample.json"
    assert DataChecker("summary_event", pd.read_json(sample, orient="records")).run() == []
