"""Training whose server is killed in the middle: `MonitoredTrainingSession` goes on from the last checkpoint by itself."""

import glob
import os
import pathlib
import shutil
import tempfile
import threading
import time

import tensorflow as tf

from harness import OwnServer, case, limit
from scripts import batch_of, perceptron, stored

tf1 = tf.compat.v1

# The step that a training is to reach, and that from which on its server is killed.
LAST, KILLED = 40, 17
EVERY = 5


class Killer(tf1.train.SessionRunHook):
    """Kills the server while steps go on, and starts another one at its address.

    At the beginning of each session, the checkpoints from which it was restored are kept.
    """

    def __init__(self, server, step, folder, kept):
        self.server, self.step, self.folder, self.kept = server, step, folder, kept
        self.sessions, self.thread = 0, None

    def after_create_session(self, session, coord):
        if self.sessions:
            shutil.copytree(self.folder, self.kept, dirs_exist_ok=True)
            # The state file has whole paths.
            state = pathlib.Path(self.kept, "checkpoint")
            state.write_text(state.read_text().replace(f"{self.folder}/", f"{self.kept}/"))
        self.sessions += 1

    def before_run(self, run_context):
        time.sleep(0.02)
        return tf1.train.SessionRunArgs(self.step)

    def after_run(self, run_context, run_values):
        if run_values.results >= KILLED and self.thread is None:
            self.thread = threading.Thread(target=self.replace)
            self.thread.start()

    def replace(self):
        time.sleep(0.05)
        self.server.kill()
        self.server.start()


class Losses(tf1.train.SessionRunHook):
    """The loss of each step; of one that runs again, the last."""

    def __init__(self, step, loss):
        self.tensors, self.found = [step, loss], {}

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(self.tensors)

    def after_run(self, run_context, run_values):
        step, loss = run_values.results
        self.found[int(step)] = loss

    def since(self, first):
        return [self.found[step] for step in range(first, LAST)]


def built():
    """The graph of a training, whose examples follow from the step."""
    step = tf1.train.get_or_create_global_step()
    # The update of the step comes after all that needs its value from before.
    before = tf.identity(step)
    loss = perceptron(*batch_of(before))
    train = tf1.train.AdamOptimizer(0.03).minimize(loss, global_step=step)
    return before, loss, train


def trained(address, folder, train, hooks, **options):
    """Trains up to the last step, as a script does that knows nothing of losses of its server."""
    hooks = [tf1.train.StopAtStepHook(last_step=LAST), *hooks]
    options = {"save_summaries_steps": None, "save_summaries_secs": None, "log_step_count_steps": None, **options}
    with tf1.train.MonitoredTrainingSession(
            master=address, checkpoint_dir=folder, hooks=hooks, save_checkpoint_secs=None,
            save_checkpoint_steps=EVERY, **options) as session:
        while not session.should_stop():
            session.run(train)


def first_step_of(folder):
    """The step of the newest checkpoint."""
    return int(tf1.train.latest_checkpoint(folder).rpartition("-")[2])


def killed_and_alone(log, train, before, loss, hooks=(), **options):
    """A training whose server is killed, and another one that begins with the checkpoint from which the first went on."""
    with tempfile.TemporaryDirectory() as top:
        folder, kept = os.path.join(top, "run"), os.path.join(top, "kept")
        losses, alone = Losses(before, loss), Losses(before, loss)
        with OwnServer() as server:
            killer = Killer(server, before, folder, kept)
            trained(server.address, folder, train, [losses, killer, *hooks], **options)
            killer.thread.join()
        log.same("went on", killer.sessions >= 2)
        log.same("latest", os.path.basename(tf1.train.latest_checkpoint(folder)))
        log.value("losses", losses.since(0))
        log.value("stored", stored(tf1.train.latest_checkpoint(folder)))
        first = first_step_of(kept)
        log.same("from a checkpoint after the beginning", KILLED - EVERY < first < LAST)
        with OwnServer() as server:
            trained(server.address, kept, train, [alone])
        same = [abs(a - b) <= 1e-6 for a, b in zip(losses.since(first), alone.since(first))]
        log.same("as if undisturbed", all(same) and len(same) == LAST - first)
        return events_of(folder) if options else None


def events_of(folder):
    """The values of summaries by tag and step; of steps that ran again, the last."""
    # Hooks write on threads: the files are whole once they are closed.
    tf1.summary.FileWriterCache.clear()
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "events.out.tfevents.*"))):
        for event in tf1.train.summary_iterator(path):
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    found[f"{value.tag} {event.step}"] = value.simple_value
    return found


@limit(240)
@case
def a_training_goes_on_after_its_server_was_killed(address, log):
    before, loss, train = built()
    killed_and_alone(log, train, before, loss)


@limit(240)
@case
def a_training_with_summaries_goes_on_after_its_server_was_killed(address, log):
    before, loss, train = built()
    tf1.summary.scalar("loss", loss)
    tf1.summary.histogram("kernel", tf1.trainable_variables()[0])
    lines = {}

    def line(values):
        lines[int(values["step"])] = float(values["loss"])
        return ""
    logging = tf1.train.LoggingTensorHook({"step": before, "loss": loss}, every_n_iter=1, formatter=line)
    found = killed_and_alone(log, train, before, loss, [logging], save_summaries_steps=4, log_step_count_steps=None)
    tags = {name: value for name, value in found.items() if name.split()[0].endswith("/loss")}
    # At which steps a hook acts after a restart follows from when the server was killed.
    early = {name: value for name, value in tags.items() if int(name.split()[1]) <= KILLED - EVERY}
    log.value("summaries", dict(sorted(early.items())))
    log.same("summaries of the end", max(int(name.split()[1]) for name in tags) > LAST - 5)
    log.value("lines", [lines[step] for step in range(LAST)])
