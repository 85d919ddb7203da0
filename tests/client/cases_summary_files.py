"""Event files that graphs write, as TensorFlow reads them back."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, summary_pb2
from tensorflow.core.util import event_pb2

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops

REAL = ["half", "float", "double", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def images():
    """Batches of images, by name."""
    random = np.random.RandomState(3)
    signed = random.standard_normal((2, 5, 4, 3))
    broken = signed[:1].astype(np.float32)
    broken[0, 1, 1, 0], broken[0, 2, 3, 2] = np.nan, -np.inf
    return {
        "bytes": random.randint(0, 256, (4, 3, 6, 1)).astype(np.uint8), "float": np.float32(signed),
        "double": np.abs(signed), "half": np.float16(np.abs(signed) * 9), "signed_half": np.float16(signed),
        "broken": broken, "dark": np.float32(np.full((1, 2, 2, 4), 1e-9)),
    }


def program(logdir):
    """Adds ops that write events to a folder; the names of their nodes, in the order in which they run."""
    writer = raw.SummaryWriter(shared_name="writer", container="")
    made = [raw.CreateSummaryFileWriter(writer=writer, logdir=logdir, max_queue=3, flush_millis=100000,
                                        filename_suffix=".end")]
    step = tf.constant(7, tf.int64)
    made += [raw.WriteScalarSummary(writer=writer, step=step, tag=f"scalar/{dtype}", value=tf.cast(3, dtype))
             for dtype in REAL]
    made += [raw.WriteHistogramSummary(writer=writer, step=step + 1, tag=f"histogram/{dtype}",
                                       values=tf.cast([[3, 0, 100], [1, 1, 77]], dtype)) for dtype in REAL + ["bool"]]
    made += [raw.WriteImageSummary(writer=writer, step=step, tag=f"image/{name}", tensor=batch,
                                   bad_color=tf.constant([9, 8, 7, 6], tf.uint8)) for name, batch in images().items()]
    made += [raw.WriteRawProtoSummary(writer=writer, step=step, tensor=[
        raw.ImageSummary(tag=f"image_op/{name}", tensor=batch, max_images=1), raw.ScalarSummary(tags="s", values=1.0)])
        for name, batch in images().items()]
    made += [raw.WriteAudioSummary(writer=writer, step=step, tag="audio", tensor=np.float32([[0.5, -0.5], [1, -2]]),
                                   sample_rate=8000.5, max_outputs=1)]
    metadata = summary_pb2.SummaryMetadata(display_name="shown", data_class=2)
    metadata.plugin_data.plugin_name = "scalars"
    for name, value in {"numbers": tf.constant([[1.5, 2.5]]), "texts": tf.constant([b"ab", b"\xff"]),
                        "flags": tf.constant([True, False])}.items():
        made.append(raw.WriteSummary(writer=writer, step=-step, tensor=value, tag=f"tensor/{name}",
                                     summary_metadata=metadata.SerializeToString()))
    made.append(raw.WriteSummary(writer=writer, step=step, tensor=2.0, tag="bare", summary_metadata=b""))
    graph = graph_pb2.GraphDef()
    graph.node.add(name="x", op="NoOp")
    made.append(raw.WriteGraphSummary(writer=writer, step=step, tensor=graph.SerializeToString()))
    event = event_pb2.Event(wall_time=5.5, step=11, log_message=event_pb2.LogMessage(level=20, message="told"))
    made.append(raw.ImportEvent(writer=writer, event=event.SerializeToString()))
    made += [raw.FlushSummaryWriter(writer=writer), raw.CloseSummaryWriter(writer=writer)]
    return [operation.name for operation in made]


def events(folder):
    """The events of the only file in a folder, without their times, with pixels for encoded images."""
    path, = pathlib.Path(folder).iterdir()
    assert path.name.startswith("events.out.tfevents.") and path.name.endswith(".end"), path.name
    found = []
    for event in tf1.train.summary_iterator(str(path)):
        assert event.wall_time > 0
        event.wall_time = 0
        event.source_metadata.Clear()
        event.ClearField("source_metadata")
        for value in event.summary.value:
            if value.HasField("image"):
                with tf.Graph().as_default(), tf1.Session() as session:
                    pixels = session.run(tf.io.decode_png(value.image.encoded_image_string))
                value.image.encoded_image_string = pixels.tobytes()
        found.append(event)
    return found


@case
def events_of_every_kind(address, log):
    with tempfile.TemporaryDirectory() as folder:
        names = program(f"{folder}/new/one")
        with tf1.Session(address) as session:
            for name in names:
                session.run(name)
        for at, event in enumerate(events(f"{folder}/new/one")):
            log.same(f"{at}", str(event))


@case
def events_that_are_refused(address, log):
    writer = raw.SummaryWriter(shared_name="refusing", container="")
    step = tf.constant(1, tf.int64)
    scalar = raw.WriteScalarSummary(writer=writer, step=step, tag="a", value=1.0)
    flush, close = raw.FlushSummaryWriter(writer=writer), raw.CloseSummaryWriter(writer=writer)
    image = {"writer": writer, "step": step, "tag": "i", "bad_color": np.uint8([1, 2])}
    wrong = {
        "nan": raw.WriteHistogramSummary(writer=writer, step=step, tag="a", values=[np.nan]),
        "colour": raw.WriteImageSummary(tensor=np.zeros((1, 2, 2, 3), np.float32), **image),
        "channels": raw.WriteImageSummary(tensor=np.zeros((1, 2, 2, 2), np.float32), **image),
        "graph": raw.WriteGraphSummary(writer=writer, step=step, tensor=b"\x0a\xff"),
        "summary": raw.WriteRawProtoSummary(writer=writer, step=step, tensor=[b"", b"\x0a\xff"]),
        "event": raw.ImportEvent(writer=writer, event=b"\x0a\xff"),
    }
    with tempfile.TemporaryDirectory() as folder, tf1.Session(address) as session:
        create = raw.CreateSummaryFileWriter(writer=writer, logdir=folder, max_queue=3, flush_millis=100000,
                                             filename_suffix="")
        for name, op in {"scalar before": scalar, "flush before": flush, "close before": close}.items():
            with log.refused(name):
                session.run(op)
        session.run(create)
        session.run(create)
        for name, op in wrong.items():
            with log.refused(name):
                session.run(op)
        session.run(close)
        for name, op in {"scalar after": scalar, "close again": close}.items():
            with log.refused(name):
                session.run(op)
        session.run(create)
        session.run([scalar])
        session.run(close)
        log.same("files", len(list(pathlib.Path(folder).iterdir())))
