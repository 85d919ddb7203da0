"""TensorFlow's own client on servers with TLS, tokens, and files of one folder, through `tenon proxy`.

    python secured.py TENON [PLANE...]

A cluster of two tasks whose certificates `openssl` makes: what it trains has to be what a cluster of TensorFlow's servers, which
has none of that, trains. It is done for each of the named ways between the tasks (`tenon serve --data-plane`), or for `auto`.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import clusters  # noqa: E402
from harness import Log, compare, free_port  # noqa: E402

ADA, TASK, EVE = "ada-" * 8, "task-" * 8, "eve-" * 8


def openssl(*arguments, folder):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def certificates(folder):
    """ca.pem, and localhost.pem with localhost.key."""
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority",
            folder=folder)
    openssl("req", *curve, "-keyout", "localhost.key", "-out", "localhost.csr", "-subj", "/CN=localhost", folder=folder)
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "localhost.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "localhost.pem", folder=folder)


class Processes(contextlib.ExitStack):
    """Processes that print an address first, and are ended with the block."""

    def __init__(self, tenon, folder):
        super().__init__()
        self.tenon, self.folder = tenon, folder

    def start(self, *arguments):
        environment = {**os.environ, "XDG_CONFIG_HOME": str(self.folder)}
        process = subprocess.Popen([self.tenon, *arguments], stdout=subprocess.PIPE, text=True, env=environment)
        self.callback(process.wait)
        self.callback(process.kill)
        return process, process.stdout.readline().strip()


def tls(folder):
    return ["--tls-cert", str(folder / "localhost.pem"), "--tls-key", str(folder / "localhost.key"),
            "--tls-ca", str(folder / "ca.pem")]


def token_file(folder, name, text):
    file = folder / name
    file.write_text(text)
    file.chmod(0o600)
    return ["--token-file", str(file)]


def secured(tenon, folder, plane, use):
    """Runs `use` with the address of a proxy of a cluster with TLS and tokens, and that of a proxy with a wrong token."""
    spec = {"ps": [f"localhost:{free_port()}"], "worker": [f"localhost:{free_port()}"]}
    tokens = token_file(folder, "tokens", f"client ada {ADA}\nworker task {TASK}\n")
    allowed = folder / "allowed"
    allowed.mkdir()
    (allowed / "inside").write_text("inside")
    (folder / "outside").write_text("outside")
    (allowed / "link").symlink_to(folder / "outside")
    with Processes(tenon, folder) as processes:
        for job in spec:
            _, address = processes.start("serve", "--cluster", json.dumps(spec), "--job", job, "--task", "0", *tls(folder), *tokens,
                                         "--allow-files", str(allowed), "--audit", str(folder / f"{job}.audit"),
                                         "--data-plane", plane)
            assert address.startswith("grpcs://"), address
        own = token_file(folder, "own", f"client ada {ADA}\n")
        wrong = token_file(folder, "wrong", f"client eve {EVE}\n")
        _, proxy = processes.start("proxy", "--to", spec["worker"][0], *tls(folder), *own)
        _, refused = processes.start("proxy", "--to", spec["worker"][0], *tls(folder), *wrong)
        return use(proxy, refused, allowed)


def check_files(address, allowed):
    """Only files of the folder are read, whatever the name says."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf1.Session(address) as session:
        name = tf1.placeholder(tf.string)
        with tf.device("/job:worker/task:0"):
            read = tf.io.read_file(name)
        assert session.run(read, {name: str(allowed / "inside")}) == b"inside"
        for outside in [allowed / "link", allowed / ".." / "outside", allowed.parent / "outside", "/proc/self/environ"]:
            try:
                raise AssertionError(f"{outside} was read: {session.run(read, {name: str(outside)})}")
            except tf.errors.PermissionDeniedError as error:
                assert "text.files" in str(error), error


def check_refused(address):
    import tensorflow as tf
    with tf.Graph().as_default(), tf.compat.v1.Session(address) as session:
        one = tf.constant(1)
        try:
            raise AssertionError(f"a client with an unknown token got {session.run(one)}")
        except tf.errors.UnauthenticatedError as error:
            assert "does not know the token" in str(error), error


def check_deadline(address):
    """The deadline of a step comes through the proxy."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf1.Session(address) as session:
        with tf.device("/job:worker/task:0"):
            queue = tf.queue.FIFOQueue(1, tf.int32)
        late = tf1.RunOptions(timeout_in_ms=500)
        try:
            session.run(queue.dequeue(), options=late)
            raise AssertionError("an empty queue gave an element")
        except tf.errors.DeadlineExceededError:
            pass


def train(workers):
    import tensorflow as tf
    log = Log()
    with tf.Graph().as_default():
        clusters.SCRIPTS["gradient_descent"](workers, log)
    return ("done", log.entries)


def check(tenon, plane, theirs):
    """A cluster whose tensors go this way trains what TensorFlow's servers train."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        certificates(folder)

        def use(proxy, refused, allowed):
            ours = train([proxy])
            check_files(proxy, allowed)
            check_refused(refused)
            check_deadline(proxy)
            return ours

        found = compare(secured(tenon, folder, plane, use), theirs)
        assert found is None, f"{plane}: {found}"
        events = [json.loads(line) for line in (folder / "worker.audit").read_text().splitlines()]
        who = {event["who"] for event in events if event["what"] == "RunStep" and event["outcome"] == "OK"}
        assert who == {"ada"}, who
        assert any(event["outcome"] == "UNAUTHENTICATED" for event in events)
        opened = [json.loads(line) for line in (folder / "ps.audit").read_text().splitlines()]
        assert {event["who"] for event in opened if event["what"] == "CreateWorkerSession"} == {"task"}, opened


def main(tenon, planes):
    import tensorflow as tf
    tf.compat.v1.disable_eager_execution()
    with clusters.Cluster(tenon, "tt", []) as cluster:
        theirs = train(cluster.workers)
    for plane in planes or ["auto"]:
        check(tenon, plane, theirs)
    print("secured: the same losses and variables over TLS, tokens and a proxy; files and tokens are refused")


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    main(sys.argv[1], sys.argv[2:])
