"""Writes tensorflow.tfevents: the events of the test in src/events.rs, as TensorFlow writes them.

    pip install tensorflow-cpu==2.21.0      (in a throw-away virtual environment)
    python events.py                        writes the file and reads it back
    python events.py FILE                   prints the events of any file, as TensorFlow reads them
"""

import pathlib
import sys

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, summary_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.util import event_pb2

WALL_TIME = 1_700_000_000.25
Log = event_pb2.SessionLog


def events():
    """The events, without their time."""
    graph = graph_pb2.GraphDef()
    graph.node.add(name="x", op="NoOp")
    writer = event_pb2.SourceMetadata(writer="tenon_training::events")
    yield event_pb2.Event(file_version="brain.Event:2", source_metadata=writer)
    yield event_pb2.Event(graph_def=graph.SerializeToString())
    yield event_pb2.Event(step=3, session_log=Log(status=Log.START))
    for step, tag, number in [(4, "loss", 0.5), (5, "zero", 0.0), (6, "hi", 1.5)]:
        summary = summary_pb2.Summary()
        summary.value.add(tag=tag, simple_value=number)
        yield event_pb2.Event(step=step, summary=summary)
    metadata = config_pb2.RunMetadata().SerializeToString()
    tagged = event_pb2.TaggedRunMetadata(tag="step_6", run_metadata=metadata)
    yield event_pb2.Event(step=6, tagged_run_metadata=tagged)
    log = Log(status=Log.CHECKPOINT, checkpoint_path="/tmp/model-6")
    yield event_pb2.Event(step=6, session_log=log)
    yield event_pb2.Event(step=-1, session_log=Log(status=Log.STOP))


def main():
    if len(sys.argv) > 1:
        for event in tf.compat.v1.train.summary_iterator(sys.argv[1]):
            print(event)
        return
    path = pathlib.Path(__file__).parent / "tensorflow.tfevents"
    written = list(events())
    with tf.io.TFRecordWriter(str(path)) as file:
        for event in written:
            event.wall_time = WALL_TIME
            file.write(event.SerializeToString(deterministic=True))
    assert list(tf.compat.v1.train.summary_iterator(str(path))) == written


if __name__ == "__main__":
    main()
