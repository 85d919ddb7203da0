"""A Tenon cluster whose tasks are Ray actors.

Each actor starts one `tenon serve` as a child process. Ray places the actors, and restarts one that is lost; tensors pass between
the tasks themselves, never through Ray.

    import ray, tenon_ray

    ray.init()
    with tenon_ray.Cluster({"ps": 1, "worker": 2}, tenon="/opt/tenon/bin/tenon") as cluster:
        session = tf.compat.v1.Session(cluster.target("worker", 0))

A client that trains has checkpoints, and begins anew from the last one when a task is lost, as with any cluster of TensorFlow:
`MonitoredTrainingSession` does so. `Cluster.heal()` waits until all tasks answer again.
"""

from .cluster import Cluster, Task, TaskLost

__all__ = ["Cluster", "Task", "TaskLost"]
