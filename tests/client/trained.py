"""TensorFlow goes on with what a training loop saved, and the loop with what TensorFlow saved.

    python trained.py TRAIN_LINE      the example of core/train; plugins are found as it finds them

The example trains into a folder. TensorFlow imports the graph beside the checkpoint, restores, trains some steps, and saves
into another folder, from which the example goes on.
"""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

V1 = tf.compat.v1
VALUES = ("slope", "offset", "global_step")


def train(program, folder, steps):
    """Trains up to a step; what the program printed."""
    done = subprocess.run([program, folder, str(steps)], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def variables(session):
    """The values by name, of all variables of the graph."""
    found = {variable.op.name: session.run(variable) for variable in V1.global_variables()}
    assert sorted(found) == sorted(VALUES), found
    return found


def continue_there(ours, theirs):
    """Restores by the graph beside the checkpoint, trains 20 steps, and saves. Gives the values."""
    latest = tf.train.latest_checkpoint(ours)
    assert latest == os.path.join(ours, "model.ckpt-30"), latest
    stored = dict(tf.train.list_variables(latest))
    assert stored == {"slope": [], "offset": [], "global_step": []}, stored
    state = tf.train.get_checkpoint_state(ours)
    assert list(state.all_model_checkpoint_paths) == [os.path.join(ours, "model.ckpt-0"), latest], state
    with tf.Graph().as_default() as graph, V1.Session() as session:
        saver = V1.train.import_meta_graph(latest + ".meta")
        assert [variable.op.name for variable in V1.trainable_variables()] == ["slope", "offset"]
        saver.restore(session, latest)
        restored = variables(session)
        assert restored["global_step"] == 30, restored
        for name, value in restored.items():
            np.testing.assert_array_equal(value, tf.train.load_variable(latest, name))
        for _ in range(20):
            session.run(graph.get_operation_by_name("train"))
        saver.save(session, os.path.join(theirs, "model.ckpt"), 50)
        return variables(session)


def main():
    program = os.path.abspath(sys.argv[1])
    V1.disable_v2_behavior()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, alone = (os.path.join(folder, name) for name in ("ours", "theirs", "alone"))
        os.makedirs(theirs)
        train(program, ours, 30)
        values = continue_there(ours, theirs)
        assert values["global_step"] == 50, values
        assert train(program, theirs, 50)[0] == "begins at step 50"
        train(program, theirs, 90)
        train(program, alone, 90)
        ends = [tf.train.load_checkpoint(tf.train.latest_checkpoint(place)) for place in (theirs, alone)]
        for name in VALUES:
            there, here = (end.get_tensor(name) for end in ends)
            np.testing.assert_allclose(there, here, rtol=1e-5)
    print("trained: 90 steps, 20 of them by TensorFlow, are as 90 without it")


if __name__ == "__main__":
    main()
