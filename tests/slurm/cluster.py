"""A whole Slurm on this machine: munged, slurmctld and slurmd with a configuration of their own.

Everything lies in one new folder, and SLURM_CONF is set only for who asks for `environment`: a
Slurm of the machine is neither read nor touched, and nothing points to this one when it has gone.
"""

import importlib.util
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

PLUGIN = "snakemake_executor_plugin_slurm"
DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun")

# As on many clusters: no accounting, one partition. More CPUs than there are, since jobs that wait
# for each other's import of Snakemake finish no sooner one after another. `cred_expire` shortens
# the time that a requeued job has to wait, `KillWait` that which a cancelled one may take.
_CONFIGURATION = """
ClusterName=test
SlurmctldHost=localhost
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=0
SlurmdParameters=config_overrides
MinJobAge=300
KillWait=2
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=200000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName=localhost NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=4 RealMemory=8000 State=UNKNOWN
PartitionName=ci Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Why no Slurm can be started here, or None."""
    programs = [name for name in (*DAEMONS, *CLIENTS) if _program(name) is None]
    if programs:
        return f"no {', '.join(programs)} (Debian: slurmctld slurmd slurm-client munge)"
    if importlib.util.find_spec(PLUGIN) is None:
        return f"no {PLUGIN} (pip install -e '.[slurm]')"
    return None if os.geteuid() == 0 else "Slurm's daemons are started by root"


@dataclass(frozen=True)
class Cluster:
    """A running Slurm; `environment` is for whoever is to use it."""

    folder: Path
    environment: dict[str, str]

    def ask(self, *words: str) -> str:
        """What one of Slurm's programs says."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def jobs(self) -> dict[int, tuple[str, str]]:
        """State and comment (the rule and its wildcards) of each job so far, by its number."""
        lines = self.ask("squeue", "--states=all", "--noheader", "--format=%i|%T|%k").splitlines()
        fields = (line.split("|", 2) for line in lines)
        return {int(number): (state, comment) for number, state, comment in fields}

    def running(self) -> list[int]:
        """The numbers of the jobs that run right now."""
        return sorted(number for number, (state, _) in self.jobs().items() if state == "RUNNING")

    def restarts(self, number: int) -> int:
        """How often Slurm started a job anew."""
        found = re.search(r"Restarts=(\d+)", self.ask("scontrol", "show", "job", str(number)))
        assert found is not None
        return int(found[1])

    def set_node(self, *settings: str) -> None:
        """Change the only node, as an administrator does."""
        self.ask("scontrol", "update", "nodename=localhost", *settings)


@contextmanager
def started() -> Iterator[Cluster]:
    """Start a Slurm whose node is idle, and end it with all of its jobs."""
    # A socket's path may have 107 characters, which a test's own folder would exceed.
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/slurm-XXXXXX"], text=True).strip())
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        environment = _configure(folder)
        munge = folder / "munge"
        stack.enter_context(
            _daemon(
                folder,
                environment,
                "munged",
                "--foreground",
                "--force",
                f"--socket={munge / 'socket'}",
                f"--key-file={munge / 'key'}",
                f"--pid-file={munge / 'pid'}",
                f"--log-file={munge / 'log'}",
                f"--seed-file={munge / 'seed'}",
            )
        )
        wait_until(lambda: (munge / "socket").exists(), "munged has its socket", 30)
        stack.enter_context(_daemon(folder, environment, "slurmctld", "-D"))
        stack.enter_context(_daemon(folder, environment, "slurmd", "-D", "-N", "localhost"))
        cluster = Cluster(folder, environment)
        try:
            wait_until(lambda: _state(environment) == "idle", "the node is idle", 60)
        except AssertionError as error:
            logs = (path.read_text(errors="replace")[-2000:] for path in folder.glob("*.log"))
            raise AssertionError("\n".join((str(error), *logs))) from error
        stack.callback(_cancel_all, cluster)
        yield cluster


def wait_until(true: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait until something holds, and fail if it never does."""
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, f"waited {seconds:.0f} s until {what}"
        time.sleep(0.05)


def _program(name: str) -> str | None:
    # The daemons are in a folder that only root has in its PATH.
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin")


def _configure(folder: Path) -> dict[str, str]:
    """Write what the daemons need below `folder`; gives the environment of their clients."""
    for name in ("munge", "state", "spool", "bin"):
        (folder / name).mkdir(mode=0o700)
    key = folder / "munge" / "key"
    key.touch(0o600)
    key.write_bytes(secrets.token_bytes(128))
    ports = _free_ports(2)
    text = _CONFIGURATION.format(folder=folder, controller_port=ports[0], node_port=ports[1])
    configuration = folder / "slurm.conf"
    configuration.write_text(text)
    # Without it slurmd wants to talk to systemd where there are only cgroups of version 2.
    version = re.findall(
        r"\d+", subprocess.check_output([str(_program("slurmd")), "-V"], text=True)
    )
    plugin = "disabled" if tuple(map(int, version[:2])) >= (24, 5) else "cgroup/v1"
    (folder / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")
    # The plugin's job step forgets SLURM_CONF before it starts `srun`; elsewhere there is
    # /etc/slurm/slurm.conf.
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={configuration} exec {_program("srun")} "$@"\n')
    srun.chmod(0o755)
    programs = os.pathsep.join(
        (str(srun.parent), str(Path(sys.executable).parent), os.environ.get("PATH", ""))
    )
    # A run that is itself a job of some Slurm would be taken for one of this.
    clean = {name: os.environ[name] for name in os.environ if not name.startswith("SLURM_")}
    return {**clean, "SLURM_CONF": str(configuration), "PATH": programs}


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def _daemon(folder: Path, environment: dict[str, str], name: str, *words: str) -> Iterator[None]:
    with open(folder / f"{name}.log", "wb") as log:
        program = [str(_program(name)), *words]
        # Out of reach of Ctrl-C, which would end it before its jobs are cancelled.
        process = subprocess.Popen(
            program, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _state(environment: dict[str, str]) -> str:
    words = ["sinfo", "--noheader", "--format=%T"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _cancel_all(cluster: Cluster) -> None:
    cluster.ask("scancel", "--partition=ci")
    wait_until(lambda: not cluster.ask("squeue", "--noheader"), "all jobs have ended", 30)
