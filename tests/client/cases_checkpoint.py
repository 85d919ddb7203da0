"""Checkpoints: savers of variables, the ops that they are made of, files of both formats."""

import glob
import os
import tempfile

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops


def ends(folder):
    """The names of the files in a folder."""
    return sorted(os.path.basename(name) for name in glob.glob(os.path.join(folder, "*")))


def variables(**options):
    w = tf1.get_variable("w", initializer=np.float32([[1, 2, 3], [4, 5, 6]]), **options)
    n = tf1.get_variable("n", initializer=np.int64(7), **options)
    flag = tf1.get_variable("flag", initializer=[True, False], **options)
    return w, n, flag


def saved_and_restored(address, log, version, **options):
    w, n, flag = variables(**options)
    change = tf.group(tf1.assign(w, -w), tf1.assign(n, n + 1))
    saver = tf1.train.Saver([w, n, flag], write_version=version, max_to_keep=2)
    with tempfile.TemporaryDirectory() as folder, tf1.Session(address) as session:
        session.run(tf1.global_variables_initializer())
        paths = []
        for step in range(3):
            paths.append(saver.save(session, os.path.join(folder, "model"), global_step=step, write_meta_graph=False))
            session.run(change)
        log.same("files", ends(folder))
        log.same("latest", os.path.basename(tf1.train.latest_checkpoint(folder)))
        log.value("changed", session.run([w, n, flag]))
        saver.restore(session, paths[1])
        log.value("restored", session.run([w, n, flag]))
        reader = tf1.train.NewCheckpointReader(paths[2])
        log.value("read here", [reader.get_tensor(one.op.name) for one in (w, n, flag)])
        with log.refused("removed by the saver"):
            session.run(saver.saver_def.restore_op_name, {saver.saver_def.filename_tensor_name: paths[0]})


@case
def checkpoint_saver_of_references(address, log):
    saved_and_restored(address, log, tf1.train.SaverDef.V2, use_resource=False)


@case
def checkpoint_saver_of_resources(address, log):
    saved_and_restored(address, log, tf1.train.SaverDef.V2, use_resource=True)


@case
def checkpoint_saver_of_old_files(address, log):
    saved_and_restored(address, log, tf1.train.SaverDef.V1, use_resource=False)


@case
def checkpoint_saver_of_partitions(address, log):
    w = tf1.get_variable("w", [5, 2], initializer=tf1.zeros_initializer(), partitioner=tf1.fixed_size_partitioner(3))
    full, begin, fill = np.arange(10, dtype=np.float32).reshape(5, 2), 0, []
    for part in w:
        rows = part.shape[0]
        fill.append(tf1.assign(part, full[begin:begin + rows]))
        begin += rows
    saver = tf1.train.Saver([w], sharded=True)
    with tempfile.TemporaryDirectory() as folder, tf1.Session(address) as session:
        session.run(fill)
        path = saver.save(session, os.path.join(folder, "model"), write_meta_graph=False, write_state=False)
        log.same("files", ends(folder))
        log.value("whole", tf1.train.NewCheckpointReader(path).get_tensor(w.name))
        session.run([tf1.assign(part, -part) for part in w])
        saver.restore(session, path)
        log.value("restored", session.run([part.value() for part in w]))


KINDS = [tf.float32, tf.float64, tf.half, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16,
         tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128, tf.string]


@case
def checkpoint_of_every_type(address, log):
    values = [tf.constant([b"a", b"", b"x" * 200]) if kind == tf.string else tf.cast([0, 1, 1], kind) for kind in KINDS]
    names = [kind.name for kind in KINDS]
    prefix = tf1.placeholder(tf.string, [])
    save = raw.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)
    restore = raw.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=KINDS)
    with tempfile.TemporaryDirectory() as folder, tf1.Session(address) as session:
        name = {prefix: os.path.join(folder, "all")}
        session.run(save, name)
        log.value("restored", session.run(restore, name))
        for end in ends(folder):
            with open(os.path.join(folder, end), "rb") as file:
                log.same(end, file.read().hex())


@case
def checkpoint_parts(address, log):
    x = tf.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    prefix, text = tf1.placeholder(tf.string, []), tf1.placeholder(tf.string, [])
    save = raw.SaveV2(prefix=prefix, tensor_names=["x", "x"], shape_and_slices=["4 3 0,2:-", "4 3 2,2:-"], tensors=[x, -x])

    def restore(spec, dtype=tf.float32, name="x"):
        return raw.RestoreV2(prefix=prefix, tensor_names=[name], shape_and_slices=[spec], dtypes=[dtype])[0]

    specs = ["", "4 3 1,2:-", "4 3 0,4:2,1", "4 3 3,1:0,1"]
    reads = {spec: restore(spec) for spec in specs}
    wrong = {"type": restore("", tf.int32), "name": restore("", name="y"), "shape": restore("5 3 1,2:-"),
             "spec": restore(text)}
    with tempfile.TemporaryDirectory() as folder, tf1.Session(address) as session:
        feed = {prefix: os.path.join(folder, "parts"), text: "4 3 1:-"}
        session.run(save, feed)
        for spec, read in reads.items():
            log.value(spec or "whole", session.run(read, feed))
        for name, read in wrong.items():
            with log.refused(name):
                session.run(read, feed)
        with log.refused("no file"):
            session.run(reads[""], {prefix: os.path.join(folder, "none")})


@case
def checkpoint_old_ops(address, log):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    file = tf1.placeholder(tf.string, [])
    save = raw.Save(filename=file, tensor_names=["x", "t"], data=[x, tf.constant([b"a", b"bc"])])
    slices = raw.SaveSlices(filename=file, tensor_names=["x", "x"], shapes_and_slices=["4 2 0,2:-", "4 2 2,2:-"], data=[x, -x])
    read, texts = (raw.Restore(file_pattern=file, tensor_name=name, dt=dt) for name, dt in (("x", tf.float32), ("t", tf.string)))
    part = raw.RestoreSlice(file_pattern=file, tensor_name="x", shape_and_slice="4 2 1,2:1,1", dt=tf.float32)
    absent = raw.Restore(file_pattern=file, tensor_name="y", dt=tf.float32)
    other = raw.Restore(file_pattern=file, tensor_name="x", dt=tf.int32)
    with tempfile.TemporaryDirectory() as folder, tf1.Session(address) as session:
        feed = {file: os.path.join(folder, "old")}
        session.run(save, feed)
        log.value("whole", session.run([read, texts], feed))
        for name, op in (("absent", absent), ("type", other), ("shape", part)):
            with log.refused(name):
                session.run(op, feed)
        with log.refused("no file"):
            session.run(read, {file: os.path.join(folder, "none")})
        # A server may keep a file open under its name.
        feed = {file: os.path.join(folder, "slices")}
        session.run(slices, feed)
        log.value("slices", session.run([read, part], feed))


@case
def checkpoint_merged(address, log):
    folder_name = tf1.placeholder(tf.string, [])
    parts = [tf.strings.join([folder_name, f"/temp/part{at}"]) for at in range(2)]
    saves = [raw.SaveV2(prefix=part, tensor_names=[f"x{at}"], shape_and_slices=[""], tensors=[tf.constant([at, at])])
             for at, part in enumerate(parts)]
    whole = tf.strings.join([folder_name, "/model"])
    merge = raw.MergeV2Checkpoints(checkpoint_prefixes=tf.stack(parts), destination_prefix=whole)
    read = raw.RestoreV2(prefix=whole, tensor_names=["x1", "x0"], shape_and_slices=["", ""], dtypes=[tf.int32] * 2)
    with tempfile.TemporaryDirectory() as folder, tf1.Session(address) as session:
        os.mkdir(os.path.join(folder, "temp"))
        feed = {folder_name: folder}
        session.run(saves, feed)
        session.run(merge, feed)
        log.same("files", ends(folder))
        log.value("restored", session.run(read, feed))
        with log.refused("again"):
            session.run(merge, feed)
