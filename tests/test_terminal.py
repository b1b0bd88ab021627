"""Commands in a terminal, in a pipe, and with signals."""

import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from commands import QUICKMEANS, done, files, run

import quickmeans
from quickmeans.cli.main import main, program
from quickmeans.cli.progress import FitMeter


def in_terminal(*args, columns=100, **env):
    """Return what a terminal shows of a command, and its exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        time.sleep(0.2)  # the size of the terminal must be set first
        env = os.environ | {"TERM": "xterm-256color"} | env  # libraries may set COLUMNS too
        os.execve(QUICKMEANS, ["quickmeans", *map(str, args)], env)
    ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    shown = b""
    while True:
        try:
            part = os.read(fd, 1 << 16)
        except OSError:  # the end, on Linux
            break
        if not part:
            break
        shown += part
    os.close(fd)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def slow(here, rng):
    """Return the options of a fit that takes some seconds."""
    np.save("slow.npy", rng.standard_normal((40_000, 40)).astype(np.float32))
    return ["fit", "slow.npy", "-k", 300, "--seed", 0, "--tol", 0]


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.mark.parametrize("columns", [100, 40])
def test_progress_in_a_terminal(slow, columns):
    shown, code = in_terminal(*slow, "--max-iter", 9, "-o", "m.safetensors", columns=columns, NO_COLOR="1")
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m|\x1b\[38", shown)  # no colours
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", ESCAPES.sub("", shown))]
    assert [line for line in lines if len(line) > columns] == []
    assert any(re.match(r"iteration \d+/9 .*< \d+ s left", line) for line in lines)
    if columns == 100:
        assert any(re.search(r"objective [\d.e+]+, [\d.]+[kM]? rows/s", line) for line in lines)
    assert any("300 clusters" in line for line in lines)


def test_progress_over_several_runs(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr("quickmeans.cli.progress.time.perf_counter", lambda: next(clock))
    shown = []
    meter = FitMeter(n_rows=5000, max_iter=10, n_runs=3)
    monkeypatch.setattr(meter, "show", lambda *what: shown.append(what))
    for iteration in (1, 2, 1, 2):
        meter.iteration(iteration, 7.0)
    assert shown[0] == ("run 1/3, iteration 1/10", 1, "objective 7")
    assert shown[1] == ("run 1/3, iteration 2/10", 2, "< 28 s left, objective 7, 5000 rows/s")
    assert shown[3] == ("run 2/3, iteration 2/10", 12, "< 18 s left, objective 7, 5000 rows/s")


def test_colours_in_a_terminal(here):
    shown, code = in_terminal("fit", "none.npy", "-k", 2, "-o", "m")
    assert code == 1
    assert "\x1b[31merror:\x1b[0m none.npy" in shown
    shown, _ = in_terminal("fit", "none.npy", "-k", 2, "-o", "m", NO_COLOR="1")
    assert "\x1b" not in shown


def test_no_control_signs_outside_a_terminal(here):
    result = run("fit", "rows.npy", "-k", 6, "-o", "m")
    assert result.stderr == ""
    assert "\x1b" not in result.stdout


def test_an_encoding_without_fine_signs(here):
    done("fit", "rows.npy", "-k", 6, "-o", "m")
    result = CliRunner(charset="ascii").invoke(program, ["predict", "m", "rows.npy"])
    assert result.exit_code == 0
    assert result.stdout.isascii()


@pytest.mark.parametrize("command", ["--help | head -1", "info m.safetensors --json | true"])
def test_a_pipe_that_is_closed_early(here, command):
    done("fit", "rows.npy", "-k", 6, "-o", "m.safetensors")
    out = subprocess.run(["bash", "-c", f"{QUICKMEANS} {command}"], capture_output=True, text=True, check=True)
    assert out.stderr == ""


def test_a_fit_whose_output_nobody_reads(here):
    reader, writer = os.pipe()
    os.close(reader)
    command = [QUICKMEANS, "fit", "rows.npy", "-k", "6", "-o", "m.safetensors"]
    out = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (out.returncode, out.stderr) == (128 + signal.SIGPIPE, "")
    assert len(quickmeans.load("m.safetensors").cluster_centers_) == 6


def interrupt(args, when):
    """Run a command and send it SIGINT as soon as `when` returns True."""
    process = subprocess.Popen([QUICKMEANS, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not when():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_ctrl_c_and_resume(slow):
    slow = [*slow, "--max-iter", 30, "-o", "m.safetensors", "--checkpoint", "c"]
    code, out, err = interrupt(slow, Path("c").exists)
    assert code == 130
    assert out == ""
    assert err == "interrupted: m.safetensors was not written; the same command continues from c.\n"
    assert files() == {"rows.npy", "slow.npy", "c"}
    resumed = run(*slow)
    assert resumed.exit_code == 0
    assert "continued from the checkpoint" in resumed.stdout
    done(*slow[:-4], "-o", "whole.safetensors", "--checkpoint", "other")
    np.testing.assert_array_equal(
        quickmeans.load("m.safetensors").cluster_centers_, quickmeans.load("whole.safetensors").cluster_centers_
    )


def test_ctrl_c_without_a_checkpoint(slow, rng):
    np.save("slow.npy", rng.standard_normal((400_000, 40)).astype(np.float32))
    start = time.monotonic()
    slow = [*slow, "-k", 1500, "--max-iter", 100, "-o", "m"]  # 2.4e10 multiply-adds an iteration
    code, _, err = interrupt(slow, lambda: time.monotonic() - start > 2)
    assert code == 130
    assert re.fullmatch(r"interrupted: .* was not written.*\n|interrupted: nothing was written.\n", err)
    assert files() == {"rows.npy", "slow.npy"}


@pytest.mark.parametrize("delay", [0, 0.1])
def test_ctrl_c_after_the_model_was_written(here, delay):
    def written():
        if Path("m").exists():
            time.sleep(delay)
        return Path("m").exists()

    code, _, err = interrupt(["fit", "rows.npy", "-k", 6, "-o", "m"], written)
    assert (code, err) in [(0, ""), (130, "interrupted: m has been written.\n"), (130, "")]


@pytest.fixture
def process(here, monkeypatch):
    """A function that runs a command with its handlers of signals, and returns its exit code."""

    def end(code):
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", end)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["quickmeans", *args])
        with pytest.raises(SystemExit) as error:
            main()
        return error.value.code

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ([], "with --checkpoint FILE a fit can be continued"),
        (["--checkpoint", "c"], "there is no checkpoint yet"),
        (["--checkpoint", "rows.npy"], "the same command continues from rows.npy"),
    ],
)
def test_ctrl_c_says_how_to_continue(process, monkeypatch, capsys, options, hint):
    monkeypatch.setattr("quickmeans.QKMeans.fit", lambda *args: os.kill(os.getpid(), signal.SIGINT))
    assert process("fit", "rows.npy", "-k", "6", "-o", "m", *options) == 130
    assert capsys.readouterr() == ("", f"interrupted: m was not written; {hint}.\n")


def test_ctrl_c_before_the_result_is_printed(process, monkeypatch, capsys):
    monkeypatch.setattr("quickmeans.cli.describe.lines", lambda facts: os.kill(os.getpid(), signal.SIGINT))
    assert process("fit", "rows.npy", "-k", "6", "-o", "m") == 130
    assert capsys.readouterr() == ("", "interrupted: m has been written.\n")


def test_narrow_terminals(here):
    done("fit", "rows.npy", "-k", 6, "-o", "m")
    for columns in (100, 40):
        text = done("predict", "m", "rows.npy", env={"COLUMNS": str(columns)})
        assert max(map(len, text.splitlines())) <= columns
        assert re.search(r"cluster +rows +share", text)
    text = done("predict", "m", "rows.npy", env={"COLUMNS": "20"})  # no room for the table
    assert re.search(r"\n  share +16.67 %\n", text)


def test_sigterm_removes_unfinished_files(process, monkeypatch):
    done("fit", "rows.npy", "-k", 6, "-o", "m")

    def labels(*args, **options):
        yield np.zeros(300, np.int32)
        assert len(files()) == 3  # with the unfinished one
        os.kill(os.getpid(), signal.SIGTERM)
        yield np.zeros(300, np.int32)

    monkeypatch.setattr("quickmeans.QKMeans.iter_labels", labels)
    assert process("predict", "m", "rows.npy", "-o", "labels.npy") == 143
    assert files() == {"rows.npy", "m"}
