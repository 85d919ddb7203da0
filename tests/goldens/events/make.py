"""Writes the graph of tests/client/cases_summary_files.py, and the events that TensorFlow writes for it.

    pip install tensorflow-cpu==2.21.0      (in a throw-away virtual environment)
    python make.py

graph.pb is the graph, with a placeholder `logdir` for the folder; steps.txt has the nodes that run, one a step; events.bin
has the records of the event file, without their times, and with pixels in the place of PNG files.
"""

import pathlib
import sys
import tempfile

import tensorflow as tf

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "client"))
import cases_summary_files as cases  # noqa: E402

tf1 = tf.compat.v1


def main():
    tf1.disable_eager_execution()
    with tf.Graph().as_default() as graph, tempfile.TemporaryDirectory() as folder:
        logdir = tf1.placeholder(tf.string, [], name="logdir")
        steps = cases.program(logdir)
        with tf1.Session() as session:
            for step in steps:
                session.run(step, {logdir: folder})
        found = cases.events(folder)
    (HERE / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString(deterministic=True))
    (HERE / "steps.txt").write_text("\n".join(steps) + "\n")
    with tf.io.TFRecordWriter(str(HERE / "events.bin")) as file:
        for event in found:
            file.write(event.SerializeToString(deterministic=True))
    print(len(steps), "steps,", len(found), "events")


if __name__ == "__main__":
    main()
