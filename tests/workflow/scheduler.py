"""A scheduler in one file, for tests: it runs what is submitted at once, on this machine.

    scheduler.py submit FOLDER SCRIPT    prints the job's number
    scheduler.py status FOLDER NUMBER    prints running, success or failed
    scheduler.py cancel FOLDER NUMBER…

A job is a process group of its own; its exit code is in FOLDER/NUMBER, its output beside it. While
FOLDER/refuse holds a word, the next job whose script holds that word is killed, once.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path


def _submit(folder: Path, script: Path) -> None:
    number = str(sum(1 for _ in folder.glob("*.out")) + 1)
    record = folder / number
    shell = '"$0" "$1"; code=$?; echo $code > "$2.part"; mv "$2.part" "$2"'
    with open(f"{record}.out", "wb") as output:
        words = ["sh", "-c", shell, "sh", str(script), str(record)]
        job = subprocess.Popen(words, stdout=output, stderr=output, start_new_session=True)
    (folder / f"{number}.pid").write_text(str(job.pid))
    print(number)
    refused = folder / "refuse"
    if refused.exists() and refused.read_text() in script.read_text():
        refused.unlink()
        _cancel(folder, number)


def _status(folder: Path, number: str) -> None:
    record = folder / number
    if not record.exists():
        print("running")
    else:
        print("success" if record.read_text().strip() == "0" else "failed")


def _cancel(folder: Path, number: str) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(int((folder / f"{number}.pid").read_text()), signal.SIGKILL)
    (folder / number).write_text("137\n")


if __name__ == "__main__":
    command, place, *names = sys.argv[1:]
    for name in names:
        if command == "submit":
            _submit(Path(place), Path(name))
        elif command == "status":
            _status(Path(place), name)
        else:
            _cancel(Path(place), name)
