"""The command inside the wheel: what it prints, its exit codes, and signals."""

import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import simulcast

SCRIPT = str(Path(sysconfig.get_path("scripts")) / "simulcast")


def run(*words: str, program: tuple[str, ...] = (SCRIPT,)) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("program", [(SCRIPT,), (sys.executable, "-m", "simulcast")])
def test_it_is_the_command(program: tuple[str, ...]) -> None:
    assert run("--version", program=program).stdout == f"simulcast {simulcast.__version__}\n"
    done = run("shape", "8,1,6,1", "7,1,5", program=program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "8,7,6,5\n", "")
    assert run("explain", "8,1,6,1", "7,1,5", program=program).stdout == str(simulcast.explain((8, 1, 6, 1), (7, 1, 5)))


def test_exit_codes_are_those_of_the_command() -> None:
    refused = run("shape", "2,3", "4")
    assert refused.returncode == 1 and "E1" in refused.stderr
    misread = run("shape", "2,x y")
    assert misread.returncode == 2 and misread.stderr.startswith("error: ")
    unknown = run("explane")
    assert unknown.returncode == 2 and "explain" in unknown.stderr
    assert run("--help").returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="signals have numbers on POSIX alone")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_no_file(number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "y.npy"
    words = ["eval", "exp(sin(a))", "a=full((200000,2000), 0.5)", "-o", str(out)]
    command = subprocess.Popen([SCRIPT, *words], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not list(tmp_path.iterdir()) and command.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    command.send_signal(number)
    assert command.wait(timeout=20) == 128 + number
    assert list(tmp_path.iterdir()) == []
