"""TensorFlow's own client on a cluster of `tenon cluster up`: what it trains has to be what TensorFlow's servers train.

    python up.py TENON [OPTION...]

Further options are those of `tenon serve` for each task: `--data-plane tcp`, say.
A task that is killed is started again by `--restart`, and the training begins anew with the same losses. On SIGTERM all
tasks end.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import clusters  # noqa: E402
from harness import Log, compare  # noqa: E402


def train(workers):
    import tensorflow as tf
    log = Log()
    with tf.Graph().as_default():
        clusters.SCRIPTS["momentum"](workers, log)
    return ("done", log.entries)


def alive(process):
    """Whether a process is there, and no zombie."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def progress(up, count):
    """The processes of so many tasks, by name, from the lines that tell of them."""
    found = {}
    while len(found) < count:
        line = up.stderr.readline()
        assert line, "the command has ended"
        if ", process " in line:
            found[line.split(":")[0]] = int(line.rsplit(" ", 1)[1])
    return found


PLACES = {
    "tf-config": ({"TF_CONFIG": json.dumps({"cluster": {"ps": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]},
                                            "task": {"type": "worker", "index": 1}})}, []),
    "slurm": ({"SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_TASKS_PER_NODE": "3", "SLURM_PROCID": "2"}, ["--ps", "1"]),
    "torchrun": ({"RANK": "2", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "MASTER_ADDR": "localhost",
                  "MASTER_PORT": "29500"}, ["--ps", "1"]),
}


def check_place(tenon, launcher, environment, options):
    """A server that a launcher starts is worker 1 of its cluster, by the launcher's name and by `env`."""
    for given in (launcher, "env"):
        command = [tenon, "serve", "--from", given, *options, "--listen", "127.0.0.1:0", "--monitor", "127.0.0.1:0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("grpc://"), f"{launcher}: {address!r}"
            import tensorflow as tf
            config = tf.compat.v1.ConfigProto(device_filters=["/job:worker/task:1"])
            with tf.Graph().as_default(), tf.compat.v1.Session(address, config=config) as session:
                names = [device.name for device in session.list_devices()]
            assert "/job:worker/replica:0/task:1/device:CPU:0" in names, names
        finally:
            process.terminate()
            assert process.wait(30) == 0
    missing = subprocess.run([tenon, "serve", "--from", launcher], capture_output=True, text=True)
    assert missing.returncode == 1 and "is not set" in missing.stderr, missing
    usage = subprocess.run([tenon, "serve", "--from", "env"], capture_output=True, text=True)
    assert usage.returncode == 2 and "TF_CONFIG" in usage.stderr, usage


def main(tenon, options):
    import tensorflow as tf
    tf.compat.v1.disable_eager_execution()
    with clusters.Cluster(tenon, "tt", []) as cluster:
        theirs = train(cluster.workers)
    up = subprocess.Popen([tenon, "cluster", "up", "1", "--ps", "1", "--restart", "--", *options], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        processes = progress(up, 2)
        spec = json.loads(up.stdout.readline())
        workers = [f"grpc://{address}" for address in spec["cluster"]["worker"]]
        found = compare(train(workers), theirs)
        assert found is None, found
        shown = subprocess.run([tenon, "top", "--cluster", json.dumps(spec), "--once", "--json"],
                               check=True, capture_output=True, text=True).stdout
        looks = json.loads(shown)
        assert looks["worker/0"]["steps"]["done"] > 20, looks
        assert looks["worker/0"]["from"]["ps/0"]["bytes"] > 0, looks
        os.kill(processes["ps/0"], signal.SIGKILL)
        processes.update(progress(up, 1))
        found = compare(train(workers), theirs)
        assert found is None, f"after the restart: {found}"
        up.send_signal(signal.SIGTERM)
        assert up.wait(30) == 0, up.returncode
        assert not any(map(alive, processes.values())), processes
    finally:
        up.kill()
    killed = subprocess.Popen([tenon, "cluster", "up", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    task = progress(killed, 1)["worker/0"]
    killed.kill()
    end = time.monotonic() + 30
    while alive(task):
        assert time.monotonic() < end, "a task outlives the command that started it"
        time.sleep(0.1)
    for launcher, (environment, options) in PLACES.items():
        check_place(tenon, launcher, environment, options)
    print("up: the same losses as TensorFlow's servers, also after a restart; no task outlives the command")


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    main(sys.argv[1], sys.argv[2:])
