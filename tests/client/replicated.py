"""A script of clusters.py: a synchronous training by three replicas, of which each step takes the gradients of two."""

import threading

import numpy as np


def replica(workers, is_chief, count, losses, lost, failures):
    """One replica of a synchronous training, whose batch is chosen by the global step: all replicas have the same one, so
    that it does not matter whose gradients are taken. `lost` gets how many of its runs began and gave no loss."""
    import tensorflow as tf
    tf1 = tf.compat.v1

    class Runs(tf1.train.SessionRunHook):
        begun, ended = 0, 0

        def before_run(self, _):
            self.begun += 1

        def after_run(self, *_):
            self.ended += 1

    runs = Runs()
    numbers = np.random.RandomState(3)
    inputs, wanted = numbers.randn(count, 16, 6).astype(np.float32), numbers.randint(0, 3, [count, 16])
    with tf.Graph().as_default():
        numbers = np.random.RandomState(7)
        with tf.device("/job:ps/task:0"), tf1.variable_scope("replicated", use_resource=True):
            weights = tf1.get_variable("weights", initializer=numbers.randn(6, 3).astype(np.float32))
            step = tf1.train.get_or_create_global_step()
        with tf.device("/job:worker/task:0"):
            before = tf.identity(step)
            at = tf.minimum(before, count - 1)
            logits = tf.matmul(tf.gather(inputs, at), weights)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.gather(wanted, at), logits=logits))
        optimizer = tf1.train.SyncReplicasOptimizer(
            tf1.train.MomentumOptimizer(0.1, 0.9), replicas_to_aggregate=2, total_num_replicas=3)
        with tf.control_dependencies([before]):
            train = optimizer.minimize(loss, global_step=step)
        hooks = [optimizer.make_session_run_hook(is_chief), tf1.train.StopAtStepHook(last_step=count), runs]
        config = tf1.ConfigProto(operation_timeout_in_ms=20000)
        try:
            with tf1.train.MonitoredTrainingSession(
                    workers[0], is_chief=is_chief, hooks=hooks, config=config, log_step_count_steps=None) as session:
                while not session.should_stop():
                    found, step_before, _ = session.run([loss, before, train])
                    losses.setdefault(int(step_before), []).append(float(found))
        except (tf.errors.DeadlineExceededError, tf.errors.CancelledError, tf.errors.OutOfRangeError, tf.errors.AbortedError):
            # The last tokens are taken by others.
            pass
        except Exception as error:  # noqa: BLE001 (of a thread: the script raises it)
            failures.append(error)
        finally:
            lost.append(runs.begun - runs.ended)


def synchronous_replicas_with_a_backup(workers, log):
    count, losses, lost, failures = 12, {}, [], []
    replicas = [threading.Thread(target=replica, args=[workers, chief, count, losses, lost, failures])
                for chief in (True, False, False)]
    for thread in replicas:
        thread.start()
    for thread in replicas:
        thread.join()
    if failures:
        raise failures[0]
    # Whose gradients count, and what a late replica reads meanwhile, is open: the losses are not compared. Two gradients of
    # runs that began at a step make the next one; such a run has no loss if it ends in an error, as one does that gets no
    # token any more: it may have stood still between its gradient and its token while the others took the last steps.
    missing = sum(max(0, 2 - len(losses.get(step, []))) for step in range(count))
    log.same("two losses of each step, but for runs that ended in an error", missing <= sum(lost))
    for step in range(count - 4):
        log.same(f"a loss of step {step}", len(losses.get(step, [])) >= 1)
        log.same(f"finite losses of step {step}", bool(np.all(np.isfinite(losses.get(step, [])))))
