"""A command that is shown can be pasted."""

import os
import subprocess

import pytest

from rl_insight.shell_words import command_line


@pytest.mark.parametrize(
    "name",
    [
        b"plain.nsys-rep",
        b"with space",
        b'it\'s "quoted" $HOME `id` \\n !x',
        b"line\nfeed\ttab",
        b"\x1b[31mred\x1b[0m 0",
        b"no utf-8 \xff\xfe1",
        "größe \N{RIGHT-TO-LEFT OVERRIDE}7\N{NO-BREAK SPACE}".encode(),
        b"esc\x07'\\",
        b"",
    ],
)
def test_a_shell_reads_back_what_was_meant(name: bytes) -> None:
    # GIVEN a command with a name of any bytes
    line = command_line(["printf", "%s\\0", os.fsdecode(name), "end"])
    # WHEN its text is pasted into a shell THEN that gets those bytes
    assert subprocess.check_output(["bash", "-c", line]) == name + b"\0end\0"
    # AND a terminal shows it as it is
    assert line.isprintable()
