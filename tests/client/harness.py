"""Cases that run against two servers, and what compares them."""

import contextlib
import fnmatch
import json
import multiprocessing
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

CASES = {}
LIMIT_S = 60


def case(function):
    """Marks a function (address, log) as a case, under its name."""
    assert function.__name__ not in CASES, function.__name__
    CASES[function.__name__] = function
    return function


def limit(seconds):
    """Marks a case that may take longer than the others."""
    def marked(function):
        function.limit_s = seconds
        return function
    return marked


class Log:
    """What a case saw, in order."""

    def __init__(self):
        self.entries = []

    def value(self, name, value):
        """Logs a result of a step: arrays, or nested lists and dictionaries of them."""
        self.entries.append((name, value))

    def same(self, name, value):
        """Logs plain data: text, numbers, lists."""
        self.entries.append((name, json.dumps(value, sort_keys=True)))

    @contextlib.contextmanager
    def refused(self, name, theirs=()):
        """Logs the code by which the block is refused, or that it is not.

        Where TensorFlow's server has another code than its own sessions in one process, `theirs` leads to that of the
        sessions, which is ours.
        """
        from tensorflow.python.framework import errors_impl
        try:
            yield
            code = "not refused"
        except errors_impl.OpError as error:
            code = type(error).__name__
        except (TypeError, ValueError, RuntimeError) as error:
            code = "client: " + type(error).__name__
        self.entries.append((name, dict(theirs).get(code, code)))


def work(module, address, command, names, results):
    """Runs cases against a server, in a process of its own, until there are none left."""
    # A group of its own, with the servers that cases start.
    os.setpgrp()
    OwnServer.command = command
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.logging.set_verbosity("ERROR")
    __import__(module)
    for name in iter(names.get, None):
        log = Log()
        try:
            # State outlives sessions: each case has names of its own.
            with tf.Graph().as_default(), tf.compat.v1.variable_scope(name):
                CASES[name](address, log)
            results.put(("done", log.entries))
        except BaseException as error:  # noqa: BLE001 (whatever ends a case is its result)
            results.put(("failed", f"{type(error).__name__}: {error}"[:2000]))


class Client:
    """A process that runs the cases of a file against one server, and is replaced when one of them hangs."""

    def __init__(self, module, address, command):
        self.module, self.address, self.command, self.process = module, address, command, None

    def begin(self, name):
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.names, self.results = context.Queue(), context.Queue()
            arguments = (self.module, self.address, self.command, self.names, self.results)
            self.process = context.Process(target=work, args=arguments, daemon=True)
            self.process.start()
        self.limit_s = getattr(CASES[name], "limit_s", LIMIT_S)
        self.names.put(name)

    def end(self):
        """What the case logged, or why it did not come to its end."""
        deadline = time.monotonic() + self.limit_s
        while time.monotonic() < deadline and self.process.is_alive():
            with contextlib.suppress(queue.Empty):
                return self.results.get(timeout=0.2)
        with contextlib.suppress(queue.Empty):
            return self.results.get(timeout=1)
        died = not self.process.is_alive()
        self.stop()
        return ("failed", "its process died" if died else f"it took more than {self.limit_s} s")

    def stop(self):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.join()
            self.process = None


def difference(ours, theirs):
    """Where two results differ; None where they do not."""
    if isinstance(theirs, (list, tuple)):
        if not isinstance(ours, (list, tuple)) or len(ours) != len(theirs):
            return f"{ours!r} for {theirs!r}"
        found = (difference(a, b) for a, b in zip(ours, theirs))
        return next((one for one in found if one), None)
    if isinstance(theirs, dict):
        if not isinstance(ours, dict) or ours.keys() != theirs.keys():
            return f"{ours!r} for {theirs!r}"
        found = (difference(ours[key], theirs[key]) for key in theirs)
        return next((one for one in found if one), None)
    if isinstance(theirs, (str, bytes, type(None))):
        return None if ours == theirs else f"{ours!r} for {theirs!r}"
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{list(a.shape)} for {b.dtype}{list(b.shape)}"
    if a.dtype.kind in "fc" or a.dtype.name == "bfloat16":
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        a, b = a.astype(wide), b.astype(wide)
        scale = max(np.abs(b[np.isfinite(b)]).max(initial=0), 1e-30)
        equal = np.isclose(a, b, rtol=0, atol=1e-5 * scale, equal_nan=True)
        return None if equal.all() else f"{a.ravel()[:8]} for {b.ravel()[:8]}"
    return None if (a == b).all() else f"{a.ravel()[:8]} for {b.ravel()[:8]}"


def compare(ours, theirs):
    """Why the outcomes of two servers are not the same; None where they are."""
    if theirs[0] != "done":
        return f"TensorFlow's server: {theirs[1]}"
    if ours[0] != "done":
        return f"ours: {ours[1]}"
    names = [name for name, _ in theirs[1]]
    if names != [name for name, _ in ours[1]]:
        return f"logged {[name for name, _ in ours[1]]} for {names}"
    for (name, a), (_, b) in zip(ours[1], theirs[1]):
        found = difference(a, b)
        if found:
            return f"{name}: {found}"
    return None


THEIRS = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
config = tf.compat.v1.ConfigProto(device_count={"CPU": 2})
cluster = {"localhost": ["localhost:%d" % int(sys.argv[1])]}
server = tf.distribute.Server(cluster, "localhost", 0, config=config)
print(server.target, flush=True)
server.join()
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# In the place of a port in a command.
PORT = "%PORT%"


def started(command, port, errors):
    """The process of a server, whose first line is its address."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = [part.replace(PORT, str(port)) for part in command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)


class OwnServer:
    """A server for one case, of the same kind as the one that the case runs against: the case may kill it, and start
    another one at its address."""

    command = [sys.executable, "-c", THEIRS, PORT]

    def __enter__(self):
        self.port, self.process = free_port(), None
        self.start()
        return self

    def start(self):
        self.process = started(self.command, self.port, subprocess.DEVNULL)
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("grpc://"), f"a server does not start: {self.address!r}"

    def kill(self):
        """Ends the server as `kill -9` does."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __exit__(self, *_):
        self.kill()


class Servers:
    """TensorFlow's server and ours, while the block runs."""

    def __init__(self, tenon, options):
        self.tenon, self.options, self.processes = tenon, options, []

    def __enter__(self):
        ours = [self.tenon, "serve", "--listen", f"127.0.0.1:{PORT}", "--cpus", "2", "--allow-files", "any",
                *self.options]
        self.commands = [ours, OwnServer.command]
        self.errors = tempfile.TemporaryFile()
        for command in self.commands:
            self.processes.append(started(command, free_port(), self.errors))
        self.ours, self.theirs = (process.stdout.readline().strip() for process in self.processes)
        if not self.ours.startswith("grpc://") or not self.theirs.startswith("grpc://"):
            self.__exit__()
            self.errors.seek(0)
            raise RuntimeError(f"a server does not start: {self.errors.read().decode()[-2000:]}")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def main(tenon, only, options):
    """Runs the cases; how many failed."""
    folder = pathlib.Path(__file__).parent
    sys.path.insert(0, str(folder))
    passed, failed, begin = 0, 0, time.monotonic()
    for file in sorted(folder.glob("cases_*.py")):
        before = set(CASES)
        __import__(file.stem)
        names = [name for name in CASES if name not in before and fnmatch.fnmatch(name, only)]
        if not names:
            continue
        with Servers(tenon, options) as servers:
            addresses = (servers.ours, servers.theirs)
            clients = [Client(file.stem, *one) for one in zip(addresses, servers.commands)]
            try:
                for name in names:
                    for client in clients:
                        client.begin(name)
                    why = compare(*[client.end() for client in clients])
                    print(f"{'ok    ' if why is None else 'FAILED'} {file.stem}.{name}"
                          + (f": {why}" if why else ""), flush=True)
                    passed, failed = passed + (why is None), failed + (why is not None)
            finally:
                for client in clients:
                    client.stop()
    print(f"client: {passed} cases equal, {failed} not, in {time.monotonic() - begin:.0f} s")
    return failed
