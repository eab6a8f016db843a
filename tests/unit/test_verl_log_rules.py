"""A training log of VeRL is one, and holds what plots are made of."""

import os
import tracemalloc
from pathlib import Path

import pytest

from rl_insight.data import DataChecker, DataEnum, DataValidationError
from rl_insight.data.verl_log_rules import VerlLogExistRule, VerlLogKeyParamsRule

KEYWORDS = [
    "verl",
    "actor/loss",
    "critic/score/mean",
    "critic/rewards/mean",
    "response_length/mean",
    "actor/grad_norm",
    "training/global_step",
    "training/epoch",
    "actor/lr",
    "actor/entropy",
    "Training Progress:",
]
GOOD = "\n".join(f"step:1 - {word}:0.5" for word in KEYWORDS)


def log(folder: Path, text: str | bytes = GOOD, name: str = "run_verl.log") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_good_log_passes_as_text_or_path(tmp_path: Path) -> None:
    assert DataChecker(DataEnum.VERL_LOG, log(tmp_path)).run() == []
    assert DataChecker(DataEnum.VERL_LOG, str(log(tmp_path))).run() == []


def test_the_default_keywords_are_the_documented_ones() -> None:
    assert list(VerlLogKeyParamsRule.DEFAULT_REQUIRED_KEYWORDS) == KEYWORDS


@pytest.mark.parametrize("missing", KEYWORDS[1:])
def test_each_keyword_that_is_missing_is_named(missing: str, tmp_path: Path) -> None:
    path = log(tmp_path, GOOD.replace(missing, ""))
    with pytest.raises(DataValidationError) as caught:
        DataChecker("verl_log", path).run()
    (error,) = caught.value.errors
    assert error.endswith(f"its first 2 MiB do not hold {missing}")


def test_letters_may_be_of_any_case(tmp_path: Path) -> None:
    assert VerlLogKeyParamsRule().check(log(tmp_path, GOOD.upper()))


def test_own_keywords_take_the_place_of_the_default_ones(tmp_path: Path) -> None:
    path = log(tmp_path, "verl loss/mine")
    assert VerlLogKeyParamsRule(required_keywords=["loss/MINE"]).check(path)
    rule = VerlLogKeyParamsRule(required_keywords=("loss/yours",))
    assert not rule.check(path)
    assert "loss/yours" in rule.error_message


def test_a_log_is_verls_by_its_name_or_its_first_64_kib(tmp_path: Path) -> None:
    rule = VerlLogExistRule()
    assert rule.check(log(tmp_path, "hello", "My_VeRL_job.LOG"))
    assert rule.check(log(tmp_path, b"x" * (64 * 1024 - 4) + b"VERL", "a.log"))
    assert not rule.check(log(tmp_path, b"x" * (64 * 1024 - 3) + b"VERL", "b.log"))
    assert "log of VeRL" in rule.error_message


def test_what_is_no_log_is_told(tmp_path: Path) -> None:
    rule = VerlLogExistRule()
    assert not rule.check(str(tmp_path))
    assert "not a directory" in rule.error_message
    assert not rule.check(log(tmp_path, "verl", "run_verl.txt"))
    assert ".log" in rule.error_message
    assert not rule.check(log(tmp_path, "", "empty_verl.log"))
    assert "empty" in rule.error_message
    assert not rule.check(tmp_path / "nothing.log")
    assert not rule.check(3)
    assert "not a path" in rule.error_message
    # Nobody will ever write into it.
    os.mkfifo(tmp_path / "pipe_verl.log")
    assert not rule.check(tmp_path / "pipe_verl.log")
    assert not VerlLogKeyParamsRule().check(tmp_path / "pipe_verl.log")
    assert not VerlLogKeyParamsRule().check(tmp_path)
    assert not VerlLogKeyParamsRule().check(tmp_path / "nothing.log")
    assert not VerlLogKeyParamsRule().check(None)


def test_of_a_huge_log_the_first_2_mib_are_read(tmp_path: Path) -> None:
    path = log(tmp_path)
    at = 2 * 1024 * 1024
    with path.open("r+b") as file:
        file.truncate(64 << 30)  # a hole, which takes no room
    tracemalloc.start()
    assert DataChecker("verl_log", path).run() == []
    with path.open("r+b") as file:
        file.write(b"\0" * len(GOOD))
        file.seek(at)
        file.write(GOOD.encode())
    with pytest.raises(DataValidationError):
        DataChecker("verl_log", path).run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # 2 MiB of bytes, as text, and that in lower case: each character of two bytes at the most.
    assert peak < 16 << 20


@pytest.mark.parametrize(
    "text",
    [GOOD.encode("utf-16"), b"\xff\xfe\x9f\n" + GOOD.encode(), b"\x9f\0\xff" + GOOD.encode()],
    ids=["utf-16", "a mark by chance", "no text"],
)
def test_a_log_of_another_encoding_is_read(text: bytes, tmp_path: Path) -> None:
    assert VerlLogKeyParamsRule().check(log(tmp_path, text))
