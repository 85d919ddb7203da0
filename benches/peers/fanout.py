"""What the parts of a step cost their master and their workers, in processor time.

    fanout.py TENON [--tasks N] [--seconds S] [OPTION...]      prints one JSON line for each number of tasks, and two for a part

OPTIONs are for each `tenon serve`, after `--`. A cluster of N workers on this host has a session at the first one, whose steps
have an empty part at 1, 2, 4, ... N of them. The wall time of a step says little where there are fewer processors than tasks; the
processor time of each process does not depend on the others. `part/master` is what a further part adds to that of the master,
`part/worker` what a worker spends on its part.
"""

import argparse
import json
import os
import subprocess
import sys
import time

TICK = 1e9 / os.sysconf("SC_CLK_TCK")


def servers(parent):
    """The processes of the workers, in their order."""
    with open(f"/proc/{parent}/task/{parent}/children") as file:
        children = file.read().split()
    found = {}
    for child in children:
        with open(f"/proc/{child}/cmdline") as file:
            words = file.read().split("\0")
        if "--task" in words:
            found[int(words[words.index("--task") + 1])] = int(child)
    return [found[task] for task in sorted(found)]


def used(process):
    """Nanoseconds of processor time of a process."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK


def measure(session, step, processes, seconds):
    """The least and the median time of a step, and the processor time of each process for one."""
    for _ in range(20):
        session.run(step)
    times, before, end = [], [used(it) for it in processes], time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        session.run(step)
        times.append(time.perf_counter() - begin)
    spent = [(used(it) - was) / len(times) for it, was in zip(processes, before)]
    times.sort()
    return times, spent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each number of tasks")
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    command = [given.tenon, "cluster", "up", str(given.tasks), *(["--", *given.options] if given.options else [])]
    up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        spec = json.loads(up.stdout.readline())["cluster"]["worker"]
        processes = servers(up.pid)
        counts = [1 << at for at in range(given.tasks.bit_length()) if 1 << at <= given.tasks]
        found = {}
        with tf.Graph().as_default():
            parts = []
            for task in range(given.tasks):
                with tf.device(f"/job:worker/task:{task}"):
                    parts.append(tf1.no_op())
            with tf1.Session(f"grpc://{spec[0]}") as session:
                for count in counts:
                    times, spent = measure(session, parts[:count], processes[:count], given.seconds)
                    found[count] = (spent[0], sum(spent[1:]) / max(1, count - 1))
                    print(json.dumps({
                        "bench": f"cluster/parts/{count}", "peer": "tenon", "version": "tree",
                        "median_ns": round(times[len(times) // 2] * 1e9), "min_ns": round(times[0] * 1e9),
                        "samples": len(times), "master_cpu_ns": round(spent[0]), "worker_cpu_ns": round(found[count][1]),
                    }), flush=True)
        last, second = counts[-1], counts[1]
        master = (found[last][0] - found[second][0]) / (last - second)
        for of, cpu in [("master", master), ("worker", found[last][1])]:
            print(json.dumps({"bench": f"cluster/part/{of}", "peer": "tenon", "version": "tree", "cpu_ns": round(cpu)}))
    finally:
        up.terminate()
        up.wait()


if __name__ == "__main__":
    sys.exit(main())
