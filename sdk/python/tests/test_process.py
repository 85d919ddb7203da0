"""The process: import, start, forks, Ctrl-C, logging, plugins."""

import json
import logging
import os
import signal
import subprocess
import sys
import time

import pytest
import tenon


def run(program, *, timeout=120, **options):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout, **options)


def test_importing_starts_nothing():
    program = """
import os, sys
import tenon
threads = os.listdir("/proc/self/task")
print(len(threads), "numpy" in sys.modules, "asyncio" in sys.modules and 1)
print(open("/proc/self/maps").read().count("libtenon_cpu"))
"""
    ran = run(program)
    assert ran.stdout.split("\n")[0].startswith("1 False"), ran.stdout + ran.stderr
    assert ran.stdout.split("\n")[1] == "0" and ran.stderr == ""


def test_nothing_is_printed():
    program = """
import tenon
with tenon.Graph() as graph:
    x = tenon.constant([1.0])
with tenon.Session(graph) as session:
    session.run(x)
"""
    ran = run(program)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_child_refuses_after_a_fork():
    program = """
import os, sys, tenon
with tenon.Graph() as graph:
    x = tenon.constant([1.0])
session = tenon.Session(graph)
step = session.callable([], x)
pid = os.fork()
if pid == 0:
    refused = 0
    for call in (lambda: session.run(x), lambda: tenon.Session(graph), tenon.list_devices, step, session.close):
        try:
            call()
        except tenon.errors.FailedPreconditionError as error:
            refused += "spawn" in str(error)
    print(refused, flush=True)
    sys.exit(0)
_, status = os.waitpid(pid, 0)
print(status, session.run(x).tolist())
"""
    ran = run(program)
    assert ran.stdout.split("\n")[:2] == ["5", "0 [1.0]"], ran.stdout + ran.stderr


def test_a_signal_of_a_child_is_its_own():
    program = """
import os, signal, time, tenon
from tenon import ops
with tenon.Graph() as graph:
    queue = ops.fifo_queue_v2(component_types=[tenon.float32])
    taken = ops.queue_dequeue_v2(queue, component_types=[tenon.float32])[0]
    one = tenon.constant(1.0)
session = tenon.Session(graph)
session.run(one)
pid = os.fork()
if pid == 0:
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    except KeyboardInterrupt:
        os._exit(7)
    os._exit(1)
try:
    session.run(taken, deadline=2.0)
except tenon.errors.DeadlineExceededError:
    print("deadline", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    ran = run(program)
    assert ran.stdout == "deadline 7\n", ran.stdout + ran.stderr


def test_a_fork_before_the_start_is_fine():
    program = """
import os, sys, tenon
pid = os.fork()
with tenon.Graph() as graph:
    x = tenon.constant([1.0])
with tenon.Session(graph) as session:
    print(session.run(x).tolist(), flush=True)
if pid:
    print(os.waitpid(pid, 0)[1])
"""
    ran = run(program)
    assert sorted(ran.stdout.split("\n")) == ["", "0", "[1.0]", "[1.0]"], ran.stdout + ran.stderr


def interrupted(handler):
    program = f"""
import signal, time, tenon
from tenon import ops
{handler}
with tenon.Graph() as graph:
    queue = ops.fifo_queue_v2(component_types=[tenon.float32])
    taken = ops.queue_dequeue_v2(queue, component_types=[tenon.float32])[0]
    one = tenon.constant(1.0)
session = tenon.Session(graph)
session.run(one)
print("ready", flush=True)
try:
    session.run(taken, deadline=20.0)
except KeyboardInterrupt:
    print("interrupted", session.run(one), flush=True)
except tenon.errors.DeadlineExceededError:
    print("deadline", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    time.sleep(0.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=120)
    return out.strip(), time.monotonic() - begin, errors


def test_ctrl_c_cancels_a_step():
    out, took, errors = interrupted("")
    assert out == "interrupted 1.0" and took < 15, errors


def test_a_handler_that_is_set_again_is_found():
    out, took, errors = interrupted("signal.signal(signal.SIGINT, signal.default_int_handler)")
    assert out == "interrupted 1.0" and took < 15, errors


def test_a_handler_of_the_program_decides():
    out, took, errors = interrupted("signal.signal(signal.SIGINT, lambda *_: print('noted', flush=True))")
    assert "interrupted" not in out and "deadline" in out and took > 10, errors


def test_logging_is_pythons(tmp_path):
    broken = tmp_path / "libtenon_broken.so"
    broken.write_bytes(b"no library")
    program = f"""
import logging, sys
records = []
class Keep(logging.Handler):
    def emit(self, record):
        records.append((record.name, record.levelname, record.getMessage()))
logging.getLogger("tenon").addHandler(Keep())
import tenon
tenon.configure(plugins=[{str(broken)!r}])
tenon.list_devices()
from tenon import _logs
_logs.flush()
print([record for record in records if "libtenon_broken" in record[2]][0][:2])
"""
    ran = run(program)
    name, level = eval(ran.stdout)
    assert name.startswith("tenon.") and level == "WARNING" and ran.stderr == ""


def test_levels_follow_the_logger():
    tenon.list_devices()
    logger = logging.getLogger("tenon")
    before = logger.level
    try:
        logger.setLevel(logging.DEBUG)
        assert logger.level == logging.DEBUG
    finally:
        logger.setLevel(before)


def test_what_is_there():
    info = tenon.show()
    assert info.ops > 800 and info.kernels > 500 and any(plugin.name for plugin in info.plugins)
    assert any(device.type == "CPU" and device.name.endswith("CPU:0") for device in tenon.list_devices())
    assert "device" in str(info) and tenon.__version__ in str(info)


def test_configuring_comes_first():
    tenon.list_devices()
    with pytest.raises(tenon.errors.FailedPreconditionError, match="started"):
        tenon.configure(threads=1)
    assert run("import tenon; tenon.configure(threads=0)").stderr.strip().endswith("found 0")


def test_plugins_that_are_none(tmp_path):
    with pytest.raises(tenon.TenonError, match="no_such"):
        tenon.load_plugin(tmp_path / "no_such.so")


def test_checking_a_plugin(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("TENON_COMMAND", raising=False)
    with pytest.raises(tenon.errors.FailedPreconditionError, match="TENON_COMMAND"):
        tenon.check("x.so")
    command = tmp_path / "tenon"
    command.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps({{'args': sys.argv[1:]}}))\nsys.exit(1)\n")
    command.chmod(0o755)
    monkeypatch.setenv("TENON_COMMAND", os.fspath(command))
    assert tenon.check("x.so") == {"ok": False, "args": ["check", "x.so", "--json"]}
    assert json.dumps(tenon.check("x.so"))
