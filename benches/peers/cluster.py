"""Tensors between two tasks: our ways beside TensorFlow's, and an all-reduce beside gloo.

    cluster.py TENON [--seconds S] [--largest BYTES] [--gloo PYTHON] [-- OPTIONS OF tenon serve]

Prints one JSON line for each row and peer. A peer is an arrangement of the tasks /job:ps and /job:worker: `tensorflow` is
two of TensorFlow's servers, `grpc`, `tcp` and `shm` are two of ours with that `--data-plane`, `from_tensorflow` and
`to_tensorflow` have one of each. A session of TensorFlow's client at the worker runs each step, and the peers take turns.

Rows: `cluster/noop_step`, a step of one NoOp at the worker in a session over both tasks; `cluster/step_BYTES`, a step that
sends a tensor of that size from the ps to the worker; `cluster/recv_BYTES`, the part of it that is not in a step of the same
graph which sends nothing, with the rate in GiB/s; `cluster/all_reduce_BYTES`, a step that sums a tensor of both tasks (ours
only), and with --gloo the same by torch.distributed in two processes of that Python.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "tests" / "client"))
import clusters  # noqa: E402

PEERS = {
    "tensorflow": ("tt", None), "grpc": ("oo", "grpc"), "tcp": ("oo", "tcp"), "shm": ("oo", "shm"),
    "from_tensorflow": ("to", "auto"), "to_tensorflow": ("ot", "auto"),
}
SIZES = [4, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20]
REDUCED = [4, 64 << 10, 1 << 20, 32 << 20]
GLOO = """
import json, statistics, sys, time
import torch, torch.distributed as dist
rank, path, sizes, seconds = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
for size in sizes:
    tensor, times = torch.ones(size // 4), []
    for _ in range(20):
        dist.all_reduce(tensor)
    tensor.fill_(1.0)
    dist.barrier()
    rounds = torch.zeros(1)
    end = time.monotonic() + seconds
    while True:
        rounds[0] = float(time.monotonic() < end)
        dist.broadcast(rounds, 0)
        if not rounds[0]:
            break
        tensor.fill_(1.0)
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        times.append(time.perf_counter() - begin)
    assert tensor[0] == 2.0
    if rank == 0:
        print(json.dumps([size, times, torch.__version__]), flush=True)
"""


def line(row, peer, version, times, **more):
    times = sorted(times)
    print(json.dumps({
        "date": time.strftime("%Y-%m-%d"), "row": row, "peer": peer, "version": version,
        "median_ns": round(statistics.median(times) * 1e9), "min_ns": round(times[0] * 1e9),
        "p90_ns": round(times[len(times) * 9 // 10] * 1e9), "samples": len(times), **more,
    }), flush=True)


def steps(tf, sizes, reduces):
    """A step for each row, in one graph."""
    tf1 = tf.compat.v1
    found = {}
    with tf.device("/job:ps/task:0/device:CPU:0"):
        values = {size: tf1.get_variable(f"v{size}", initializer=tf.ones([size // 4]), use_resource=True) for size in sizes}
        reads = {size: values[size].read_value() for size in sizes}
    with tf.device("/job:worker/task:0/device:CPU:0"):
        nothing = tf1.no_op()
        for size in sizes:
            found[f"cluster/step_{size}"] = tf.identity(reads[size]).op
    with tf.device("/job:ps/task:0/device:CPU:0"):
        local = {size: tf.identity(reads[size]).op for size in sizes}
    for size in reduces:
        parts = []
        for job in ["ps", "worker"]:
            with tf.device(f"/job:{job}/task:0/device:CPU:0"):
                ones = tf1.get_variable(f"r_{job}_{size}", initializer=tf.ones([size // 4]), use_resource=True)
                parts.append(tf.raw_ops.CollectiveReduce(
                    input=ones.read_value(), group_size=2, group_key=1, instance_key=size, merge_op="Add", final_op="Id",
                    subdiv_offsets=[0]).op)
        found[f"cluster/all_reduce_{size}"] = tf1.group(*parts)
    return {"cluster/noop_step": nothing, **found}, local


def gloo(python, seconds):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "CUDA_VISIBLE_DEVICES": ""}
        arguments = [os.path.join(folder, "meet"), json.dumps(REDUCED), str(seconds)]
        ranks = [subprocess.Popen([python, "-c", GLOO, str(rank), *arguments], env=environment, text=True,
                                  stdout=subprocess.PIPE) for rank in range(2)]
        for text in ranks[0].communicate()[0].splitlines():
            size, times, version = json.loads(text)
            line(f"cluster/all_reduce_{size}", "gloo", version, times)
        ranks[1].wait()


def measure(runs, seconds):
    """The times of a step at each peer, in turns."""
    times = {name: [] for name in runs}
    for run in runs.values():
        for _ in range(5):
            run()
    end = time.monotonic() + seconds * len(runs)
    while time.monotonic() < end or min(len(taken) for taken in times.values()) < 7:
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row and peer")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="bytes of the largest tensor")
    parser.add_argument("--gloo", metavar="PYTHON", help="a Python that has torch")
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity("ERROR")
    sizes = [size for size in SIZES if size <= given.largest]
    reduces = [size for size in REDUCED if size <= given.largest]
    with contextlib.ExitStack() as stack, tf.Graph().as_default():
        rows, local = steps(tf, sizes, reduces)
        init, sessions = tf1.global_variables_initializer(), {}
        for name, (arrangement, plane) in PEERS.items():
            options = given.options + (["--data-plane", plane] if plane else [])
            cluster = stack.enter_context(clusters.Cluster(given.tenon, arrangement, options))
            config = tf1.ConfigProto()
            config.experimental.collective_group_leader = "/job:ps/replica:0/task:0"
            sessions[name] = tf1.Session(cluster.workers[0], config=config)
            sessions[name].run(init)
        version = {name: tf.__version__ if name == "tensorflow" else "tree" for name in sessions}
        for row, step in rows.items():
            ours = [name for name in sessions if "all_reduce" not in row or name in ("grpc", "tcp", "shm")]
            runs = {name: sessions[name].make_callable(step) for name in ours}
            times = measure(runs, given.seconds) if runs else {}
            for name, taken in times.items():
                line(row, name, version[name], taken)
            if "/step_" not in row:
                continue
            size = int(row.rsplit("_", 1)[1])
            runs = {name: sessions[name].make_callable(local[size]) for name in ours}
            without = measure(runs, given.seconds / 2)
            for name, taken in times.items():
                base = statistics.median(without[name])
                parts = [max(one - base, 1e-9) for one in taken]
                rate = size / statistics.median(parts) / (1 << 30)
                line(f"cluster/recv_{size}", name, version[name], parts, gib_per_s=round(rate, 3))
    if given.gloo:
        gloo(given.gloo, given.seconds)


if __name__ == "__main__":
    main()
