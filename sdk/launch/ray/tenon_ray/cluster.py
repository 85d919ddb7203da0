"""Actors, and the cluster that they make."""

import json
import os
import select
import signal
import socket
import subprocess
import time

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

# How long a server may take to print its address, and an actor to answer.
START_S = 120
STOP_S = 20


class TaskLost(RuntimeError):
    """A task that does not come back."""


class Task:
    """One task of a cluster: a `tenon serve`, which ends with the actor."""

    def __init__(self, tenon, job, task, host=None):
        self.tenon, self.job, self.task, self.process = tenon, job, task, None
        self.host = host or ray.util.get_node_ip_address()

    def reserve(self, port=None):
        """A free port of this machine, or the given one. It is held until the server starts, so that no other actor gets it."""
        self.held = socket.socket()
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind((self.host, port or 0))
        return f"{self.host}:{self.held.getsockname()[1]}"

    def start(self, spec, options):
        """Starts the server in its place of the cluster; the target that it prints once it is ready."""
        self.held.close()
        command = [self.tenon, "serve", "--while-stdin", "--cluster", json.dumps(spec), "--job", self.job,
                   "--task", str(self.task), *options]
        # If the actor is killed, the server sees the end of its standard input, and stops.
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        line = self.process.stdout.readline().strip() if ready else ""
        if not line.startswith("grpc"):
            self.stop()
            raise RuntimeError(f"{self.job}/{self.task} did not start within {START_S} s; its log is that of the actor")
        return line

    def processes(self):
        """The numbers of this actor's process and of the server."""
        return os.getpid(), self.process.pid if self.process else None

    def is_up(self):
        """Whether the server runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """Ends the server: steps in flight may end."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Cluster:
    """Tasks of jobs, each an actor of a placement group.

    jobs: how many tasks each job has, such as {"ps": 1, "worker": 2}.
    tenon: the command, at the same path on each machine.
    options: options of `tenon serve` for each task, such as those of TLS.
    resources: what each actor reserves; one CPU unless told.
    strategy: how Ray spreads the actors: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD.
    restarts: how often a task may be started again; -1 is without limit.
    """

    def __init__(self, jobs, tenon="tenon", options=(), resources=None, strategy="SPREAD", restarts=-1, host=None):
        self.places = [(job, task) for job in sorted(jobs) for task in range(jobs[job])]
        if not self.places:
            raise ValueError("expected a task at least, such as {'worker': 1}")
        self.tenon, self.options, self.host = tenon, list(options), host
        self.restarts = {place: restarts for place in self.places}
        self.resources = dict(resources or {"CPU": 1})
        self.group = placement_group([self.resources] * len(self.places), strategy=strategy)
        try:
            ray.get(self.group.ready(), timeout=START_S)
            self.actors = {place: self._actor(place) for place in self.places}
            reserved = ray.get([self.actors[place].reserve.remote() for place in self.places], timeout=START_S)
            self.spec = {}
            for (job, _), address in zip(self.places, reserved):
                self.spec.setdefault(job, []).append(address)
            started = [self.actors[place].start.remote(self.spec, self.options) for place in self.places]
            self.targets = dict(zip(self.places, ray.get(started, timeout=START_S)))
        except BaseException:
            self.stop()
            raise

    def _actor(self, place):
        bundle = PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=self.places.index(place))
        cpus = self.resources.get("CPU", 0)
        others = {name: count for name, count in self.resources.items() if name not in ("CPU", "GPU")}
        actor = ray.remote(Task).options(num_cpus=cpus, num_gpus=self.resources.get("GPU", 0), resources=others,
                                         scheduling_strategy=bundle)
        return actor.remote(self.tenon, *place, self.host)

    def target(self, job, task):
        """What a session connects to."""
        return self.targets[job, task]

    def lost(self):
        """The tasks whose actor or server is gone."""
        asked = {place: actor.is_up.remote() for place, actor in self.actors.items()}
        return [place for place, answer in asked.items() if not _answer(answer)]

    def heal(self):
        """Starts the lost tasks again, at their addresses; which ones. Their sessions and variables are gone: clients open
        new sessions and restore a checkpoint.

        A task whose machine is lost cannot come back at its address: TaskLost.
        """
        lost = self.lost()
        for place in lost:
            if self.restarts[place] == 0:
                raise TaskLost(f"{place[0]}/{place[1]} is lost, and may not be started again")
            self.restarts[place] -= self.restarts[place] > 0
            ray.kill(self.actors[place])
            self.actors[place] = self._actor(place)
            self.targets[place] = self._restart(place)
        return lost

    def _restart(self, place):
        actor, end = self.actors[place], time.monotonic() + START_S
        port = int(self.spec[place[0]][place[1]].rsplit(":", 1)[1])
        while True:
            try:
                address = ray.get(actor.reserve.remote(port), timeout=START_S)
                break
            except ray.exceptions.RayTaskError as error:
                # The former server may still be ending its steps.
                if time.monotonic() > end:
                    raise TaskLost(f"{place[0]}/{place[1]}: its port {port} is not free: {error}") from error
                time.sleep(0.2)
        if address != self.spec[place[0]][place[1]]:
            raise TaskLost(f"{place[0]}/{place[1]} is on another machine now, {address}: start the cluster anew")
        return ray.get(actor.start.remote(self.spec, self.options), timeout=START_S)

    def stop(self):
        """Ends all tasks."""
        actors = getattr(self, "actors", {}).values()
        for answer in [actor.stop.remote() for actor in actors]:
            _answer(answer)
        for actor in actors:
            ray.kill(actor)
        remove_placement_group(self.group)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def _answer(asked):
    """What an actor answers; None if it is gone."""
    try:
        return ray.get(asked, timeout=START_S)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return None
