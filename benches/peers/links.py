"""What two processes of one host do beside cluster.py: sums by PyTorch's gloo, and bytes through a socket of TCP.

    links.py [--seconds S]      prints one JSON line for each row; needs PyTorch for the rows of gloo

Rows: `reduce/BYTES`, an all-reduce of floats in both processes (peer `gloo`); `transfer/BYTES`, as many bytes to the other process
and one byte back (peer `tcp`). A sample ends when both processes are done; the first tenth of the time is not counted.
"""

import argparse
import json
import multiprocessing
import os
import socket
import statistics
import time

from cluster import REDUCTIONS, TRANSFERS


def samples(step, seconds):
    """Seconds of steps."""
    times, end = [], time.monotonic() + seconds
    begin = time.monotonic() + seconds / 10
    while time.monotonic() < end or len(times) < 7:
        started = time.perf_counter()
        step()
        if time.monotonic() > begin:
            times.append(time.perf_counter() - started)
    return sorted(times)


def line(row, peer, version, times):
    print(json.dumps({
        "bench": f"cluster/{row}", "peer": peer, "version": version, "median_ns": round(statistics.median(times) * 1e9),
        "min_ns": round(times[0] * 1e9), "p90_ns": round(times[len(times) * 9 // 10] * 1e9), "samples": len(times),
    }), flush=True)


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def member(rank, port, seconds):
    """One of the two processes that sum. The first one says how many samples both take."""
    import torch
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for size in REDUCTIONS:
        value = torch.ones(size // 4)
        for _ in range(20):
            dist.all_reduce(value)
            value.fill_(1)
        started = time.perf_counter()
        dist.all_reduce(value)
        count = torch.tensor([max(7, min(20_000, int(seconds / (time.perf_counter() - started))))])
        dist.broadcast(count, 0)
        times = []
        for _ in range(int(count)):
            value.fill_(1)
            dist.barrier()
            started = time.perf_counter()
            dist.all_reduce(value)
            times.append(time.perf_counter() - started)
        assert bool((value == 2).all()), "the sum is wrong"
        if rank == 0:
            line(f"reduce/{size}", "gloo", torch.__version__, sorted(times))
    dist.destroy_process_group()


def reader(port):
    """Takes as many bytes as a head of eight says, and answers with one."""
    with socket.create_connection(("127.0.0.1", port)) as other:
        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        into = memoryview(bytearray(max(TRANSFERS)))
        while True:
            head = other.recv(8, socket.MSG_WAITALL)
            if len(head) < 8:
                return
            left, at = int.from_bytes(head, "little"), 0
            while left > at:
                at += other.recv_into(into[at:left])
            other.sendall(b"\0")


def transfers(seconds):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        started = multiprocessing.Process(target=reader, args=(listener.getsockname()[1],))
        started.start()
        other, _ = listener.accept()
    other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    content = memoryview(bytearray(max(TRANSFERS)))

    def step(size):
        other.sendall(size.to_bytes(8, "little") + (content[:size] if size <= 4096 else b""))
        if size > 4096:
            other.sendall(content[:size])
        other.recv(1, socket.MSG_WAITALL)

    for size in TRANSFERS:
        line(f"transfer/{size}", "tcp", "socket", samples(lambda: step(size), seconds))
    other.close()
    started.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    given = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    transfers(given.seconds)
    port = free_port()
    members = [multiprocessing.Process(target=member, args=(rank, port, given.seconds)) for rank in range(2)]
    for process in members:
        process.start()
    for process in members:
        process.join()


if __name__ == "__main__":
    main()
