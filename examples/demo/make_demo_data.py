"""Make the demo data: torch.profiler captures of a small imitation of two GRPO steps.

Eight real processes run: four trainer ranks in one gloo group, and two rollout replicas, each an
engine of two tensor-parallel ranks in a gloo group of its own, so that an engine's ranks are 0 and
1 in every replica, as vLLM's are. Tensors are tiny; sleeping stands in for an accelerator's time,
always inside an operator (`Attention`), so the profiler sees it as that operator's duration.

Two things are planted, to be found again by an analysis:

* trainer rank 2 computes `SLOW_FACTOR` times as long in `actor_update`; the other ranks spend the
  difference in the all-reduce of the gradients;
* replica 1 has a few very long sequences, so its engine runs about twice as long as replica 0's,
  most of the time on a nearly empty batch (`decode_tail`).

The layout is VeRL's flat one, where the trainer's file names carry the stage and the step.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Protocol

import torch
import torch.distributed as dist
from captures import capture, engine_path, replace_captures, trainer_path
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.profiler import ProfilerActivity, profile, record_function

SEED = 20260814
STEPS = (1, 2)

TRAINER_RANKS = 4
MINI_BATCHES = 2
MICRO_BATCHES = 2
LOG_PROB_SECONDS = 0.07  # per micro-batch: one forward
UPDATE_SECONDS = 0.085  # per micro-batch: forward and backward
SLOW_RANK = 2
SLOW_FACTOR = 1.6

REPLICAS = 2
TENSOR_PARALLEL = 2
SEQUENCES = 16  # per replica and step
SHORT_LENGTHS = (8, 16)  # in decode iterations
LONG_TAIL_REPLICA = 1
LONG_LENGTHS = (41, 45)
LONG_SEQUENCES = 2
PREFILL_SECONDS = 0.15
DECODE_SECONDS = 0.030  # an iteration's fixed cost; the rest grows with the running sequences
DECODE_SECONDS_PER_SEQUENCE = 0.0015

HIDDEN = 32  # and as many tokens: each batch is a square matrix
PROMPT_TOKENS = 128  # per sequence, only told in the name of the prefill's range


@dataclass(frozen=True)
class Job:
    """What every process must know to take part."""

    folder: Path
    trainer_port: int
    replica_ports: tuple[int, ...]
    everyone: Barrier
    trainers: Barrier


class _Saved(Protocol):
    backward_seconds: float


class Attention(torch.autograd.Function):
    """The layer whose duration imitates an accelerator's; the backward takes twice the forward."""

    @staticmethod
    def forward(ctx: _Saved, hidden: Tensor, seconds: float) -> Tensor:
        """Give `hidden` mixed with itself, `seconds` later."""
        ctx.backward_seconds = 2 * seconds
        time.sleep(seconds)
        return torch.addmm(hidden, hidden, hidden)

    @staticmethod
    def backward(ctx: _Saved, gradient: Tensor) -> tuple[Tensor, None]:
        """Give the gradient of the residual path, twice the forward's seconds later."""
        time.sleep(ctx.backward_seconds)
        return gradient.clone(), None


class Policy(nn.Module):
    """A small MLP around the attention: tokens x hidden to log probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.head = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, hidden: Tensor, seconds: float) -> Tensor:
        """Give the log probabilities; the forward takes about `seconds`."""
        activated = nn.functional.gelu(self.up(hidden))
        mixed = Attention.apply(activated, seconds)  # type: ignore[no-untyped-call]
        return torch.log_softmax(self.head(mixed), dim=-1)


# --- the trainer ---------------------------------------------------------------------------------


def run_trainer(job: Job, rank: int) -> None:
    """Be one trainer rank: wait for each step's rollout, then run the three stages."""
    policy, reference = Policy(), Policy()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
    stages = {
        "actor_compute_log_prob": partial(compute_log_prob, policy),
        "ref_compute_log_prob": partial(compute_log_prob, reference),
        "actor_update": partial(update_actor, policy, optimizer, rank),
    }
    stages["actor_update"](random.Random(SEED))  # first calls are slow
    for step in STEPS:
        noise = random.Random(f"{SEED} trainer {step} {rank}")
        job.everyone.wait()
        job.everyone.wait()
        for stage, run in stages.items():
            run_stage(job, stage, step, rank, partial(run, noise))


def run_stage(job: Job, stage: str, step: int, rank: int, run: Callable[[], None]) -> None:
    """Run one stage on all trainer ranks at once, as a capture of its own."""
    job.trainers.wait()
    path = partial(trainer_path, job.folder, stage, step, rank, TRAINER_RANKS)
    with capture(path), record_function(stage):
        run()


def compute_log_prob(model: Policy, noise: random.Random) -> None:
    """Run the model forward over a batch, one micro-batch after the other."""
    for micro_batch in range(MINI_BATCHES * MICRO_BATCHES):
        with record_function(f"micro_batch{micro_batch}"), torch.no_grad():
            model(torch.randn(HIDDEN, HIDDEN), LOG_PROB_SECONDS * uneven(noise))


def update_actor(
    policy: Policy, optimizer: torch.optim.Optimizer, rank: int, noise: random.Random
) -> None:
    """Update the policy over all mini-batches; `SLOW_RANK` computes longer than the others."""
    seconds = UPDATE_SECONDS * (SLOW_FACTOR if rank == SLOW_RANK else 1.0)
    for mini_batch in range(MINI_BATCHES):
        with record_function(f"mini_batch{mini_batch}"):
            optimizer.zero_grad()
            for micro_batch in range(MICRO_BATCHES):
                with record_function(f"micro_batch{micro_batch}"):
                    forward_backward(policy, seconds * uneven(noise))
            average_gradients(policy)
            optimizer.step()


def forward_backward(policy: Policy, seconds: float) -> None:
    """Add one micro-batch's gradients; forward and backward take about `seconds` together."""
    log_probs = policy(torch.randn(HIDDEN, HIDDEN), seconds / 3)
    advantages = torch.randn(HIDDEN, 1)
    (-advantages * log_probs).mean().backward()


def average_gradients(policy: Policy) -> None:
    """Average the gradients over the trainer ranks; who comes early waits here."""
    gradients = [weight.grad for weight in policy.parameters() if weight.grad is not None]
    bucket = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(bucket)
    bucket /= TRAINER_RANKS
    parts = torch.split(bucket, [gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def uneven(noise: random.Random) -> float:
    """Give a factor within 3 % of one: no two micro-batches are equally long."""
    return noise.uniform(0.97, 1.03)


# --- the rollout engines -------------------------------------------------------------------------


def run_engine(job: Job, replica: int, rank: int) -> None:
    """Be one tensor-parallel rank of a rollout replica: generate once per step."""
    execute(torch.zeros(HIDDEN, HIDDEN), 0.0)  # first calls are slow
    for step in STEPS:
        lengths = sequence_lengths(replica, step)
        job.everyone.wait()
        with capture(partial(engine_path, job.folder, replica, rank)):
            generate(torch.randn(HIDDEN, HIDDEN) / HIDDEN, lengths)
        job.everyone.wait()


def sequence_lengths(replica: int, step: int) -> list[int]:
    """Give the decode iterations that each sequence of a replica needs in a step."""
    draw = random.Random(f"{SEED} rollout {replica} {step}")
    long = LONG_SEQUENCES if replica == LONG_TAIL_REPLICA else 0
    return [draw.randint(*LONG_LENGTHS) for _ in range(long)] + [
        draw.randint(*SHORT_LENGTHS) for _ in range(SEQUENCES - long)
    ]


def generate(hidden: Tensor, lengths: Sequence[int]) -> None:
    """Prefill all sequences, then decode until the last is done.

    The iterations with at most `LONG_SEQUENCES` left are the `decode_tail`.
    """
    tail_start = sorted(lengths)[-LONG_SEQUENCES - 1]
    with record_function("generate"):
        with record_function("prefill"):
            count = len(lengths)
            with record_function(iteration_name(prefilling=count, decoding=0)):
                execute(hidden, PREFILL_SECONDS)
        with record_function("decode"):
            decode(hidden, lengths, range(tail_start))
        if tail := range(tail_start, max(lengths)):
            with record_function("decode_tail"):
                decode(hidden, lengths, tail)


def decode(hidden: Tensor, lengths: Sequence[int], iterations: range) -> None:
    """Run decode iterations, each over the sequences that are not done yet."""
    for iteration in iterations:
        running = sum(length > iteration for length in lengths)
        with record_function(iteration_name(prefilling=0, decoding=running)):
            execute(hidden, DECODE_SECONDS + DECODE_SECONDS_PER_SEQUENCE * running)


def iteration_name(prefilling: int, decoding: int) -> str:
    """Name an engine iteration as vLLM does: sequences (tokens) in prefill and in decode."""
    tokens = prefilling * PROMPT_TOKENS
    return f"execute_context_{prefilling}({tokens})_generation_{decoding}({decoding})"


def execute(hidden: Tensor, seconds: float) -> None:
    """Run one engine iteration: a forward and the all-reduce of tensor parallelism."""
    with torch.no_grad():
        dist.all_reduce(Attention.apply(hidden, seconds))  # type: ignore[no-untyped-call]


# --- the processes -------------------------------------------------------------------------------


def run_process(index: int, job: Job) -> None:
    """Be process `index`: first come the trainer ranks, then the engines' ranks."""
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    with profile(activities=[ProfilerActivity.CPU]):
        pass  # the first start of the profiler takes seconds
    if index < TRAINER_RANKS:
        with process_group(job.trainer_port, index, TRAINER_RANKS):
            run_trainer(job, index)
    else:
        replica, rank = divmod(index - TRAINER_RANKS, TENSOR_PARALLEL)
        with process_group(job.replica_ports[replica], rank, TENSOR_PARALLEL):
            run_engine(job, replica, rank)


@contextmanager
def process_group(port: int, rank: int, world_size: int) -> Iterator[None]:
    """Be in a gloo group on this machine for the length of the block."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    yield
    dist.destroy_process_group()


def free_ports(count: int) -> list[int]:
    """Give different TCP ports of the loopback device that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def run_job(folder: Path) -> None:
    """Run all processes to their end; their captures lie in `folder` then."""
    context = multiprocessing.get_context("spawn")
    engine_ranks = REPLICAS * TENSOR_PARALLEL
    trainer_port, *replica_ports = free_ports(1 + REPLICAS)
    job = Job(
        folder=folder,
        trainer_port=trainer_port,
        replica_ports=tuple(replica_ports),
        everyone=context.Barrier(TRAINER_RANKS + engine_ranks),
        trainers=context.Barrier(TRAINER_RANKS),
    )
    spawn(run_process, args=(job,), nprocs=TRAINER_RANKS + engine_ranks)  # type: ignore[no-untyped-call]


def main() -> None:
    """Make the data and print one line per file written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    default = Path(__file__).resolve().parent / "data"
    parser.add_argument("--output", type=Path, default=default, metavar="DIR")
    output: Path = parser.parse_args().output
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # not a line per start and stop
    with tempfile.TemporaryDirectory() as folder:
        run_job(Path(folder))
        for path in replace_captures(Path(folder), output):
            print(f"{path.relative_to(output)}  {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
