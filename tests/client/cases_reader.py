"""Readers: records of files whose names come from a queue; and mutexes between steps."""

import threading
import zlib

import numpy as np
import tensorflow as tf

from harness import case
from written import files, records

tf1 = tf.compat.v1
raw = tf.raw_ops

READERS = {
    "whole_file": lambda **options: raw.WholeFileReaderV2(**options),
    "text_line": lambda **options: raw.TextLineReaderV2(**options),
    "fixed_length": lambda **options: raw.FixedLengthRecordReaderV2(record_bytes=3, **options),
    "tf_record": lambda **options: raw.TFRecordReaderV2(**options),
    "identity": lambda **options: raw.IdentityReaderV2(**options),
}


def base(key):
    """Keys without the folder, which are values too where work items are the records."""
    return np.array([part.rpartition(b"/")[2] if part.startswith(b"/") else part for part in np.atleast_1d(key)])


class Work:
    """A queue with file names, which is closed behind them."""

    def __init__(self, *names, close=True, capacity=20):
        self.queue = raw.FIFOQueueV2(component_types=[tf.string], shapes=[[]], capacity=capacity)
        self.fill = raw.QueueEnqueueManyV2(handle=self.queue, components=[tf.constant(list(names), tf.string)])
        self.close = raw.QueueCloseV2(handle=self.queue)
        self.closes = close

    def begin(self, session):
        session.run(self.fill)
        if self.closes:
            session.run(self.close)


def read_all(log, session, reader, work, limit=20):
    """Reads until the queue is at its end."""
    read = raw.ReaderReadV2(reader_handle=reader, queue_handle=work.queue)
    produced = raw.ReaderNumRecordsProducedV2(reader_handle=reader)
    completed = raw.ReaderNumWorkUnitsCompletedV2(reader_handle=reader)
    work.begin(session)
    for at in range(limit):
        try:
            key, value = session.run(read)
        except tf.errors.OpError as error:
            log.same(f"{at} ends", type(error).__name__)
            break
        log.value(f"{at}", [base(key), base(value)])
        log.value(f"{at} counted", session.run([produced, completed]))
    log.value("counted", session.run([produced, completed]))


def each_reader():
    for name, make in READERS.items():
        def run(address, log, name=name, make=make):
            contents = ([b"abc\nde\r\n\nf", b"", b"ghi\n"] if name != "tf_record"
                        else [records(b"first", b"", b"x" * 5000), records(), records(b"last")])
            with files(*contents) as paths, tf1.Session(address) as session:
                read_all(log, session, make(), Work(*paths))
        run.__name__ = f"the_records_of_{name}"
        case(run)

        def up_to(address, log, name=name, make=make):
            contents = ([b"abc\nde\nf\ng\nhij\n", b"", b"kl\n"] if name != "tf_record"
                        else [records(b"a", b"b", b"c", b"d", b"e"), records(), records(b"f")])
            with files(*contents) as paths, tf1.Session(address) as session:
                reader, work = make(), Work(*paths)
                read = raw.ReaderReadUpToV2(reader_handle=reader, queue_handle=work.queue, num_records=2)
                work.begin(session)
                for at in range(10):
                    try:
                        keys, values = session.run(read)
                    except tf.errors.OpError as error:
                        log.same(f"{at} ends", type(error).__name__)
                        break
                    log.value(f"{at}", [base(keys), base(values)])
                log.value("produced", session.run(raw.ReaderNumRecordsProducedV2(reader_handle=reader)))
        up_to.__name__ = f"some_records_of_{name}"
        case(up_to)

        def state(address, log, name=name, make=make):
            contents = [b"abc\nde", b"fgh"] if name != "tf_record" else [records(b"a", b"b"), records(b"c")]
            with files(*contents) as paths, tf1.Session(address) as session:
                reader, work = make(), Work(*paths, close=False)
                read = raw.ReaderReadV2(reader_handle=reader, queue_handle=work.queue)
                serialize = raw.ReaderSerializeStateV2(reader_handle=reader)
                counts = [raw.ReaderNumRecordsProducedV2(reader_handle=reader),
                          raw.ReaderNumWorkUnitsCompletedV2(reader_handle=reader)]
                work.begin(session)
                with log.refused("at first"):
                    log.value("at first", session.run(serialize))
                session.run(read)
                with log.refused("later"):
                    later = session.run(serialize)
                    log.value("later", [part for part in later.split(b"/")][:1])
                    session.run(raw.ReaderRestoreStateV2(reader_handle=reader, state=later))
                with log.refused("another state"):
                    session.run(raw.ReaderRestoreStateV2(reader_handle=reader, state=b"\x08\x80"))
                with log.refused("negative"):
                    session.run(raw.ReaderRestoreStateV2(reader_handle=reader, state=b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
                log.value("counts", session.run(counts))
                session.run(raw.ReaderResetV2(reader_handle=reader))
                log.value("reset", session.run(counts))
                key, value = session.run(read)
                log.value("read", [base(key), base(value)])
        state.__name__ = f"the_state_of_{name}"
        case(state)


each_reader()


@case
def records_of_a_fixed_length_between_others(address, log):
    data = bytes(range(40))
    for at, options in enumerate(({"record_bytes": 4, "header_bytes": 5, "footer_bytes": 3},
                                  {"record_bytes": 4, "hop_bytes": 2}, {"record_bytes": 3, "hop_bytes": 7},
                                  {"record_bytes": 4, "header_bytes": 38}, {"record_bytes": 50})):
        with files(data, data[:20]) as paths, tf1.Session(address) as session:
            with log.refused(f"{at}"):
                read_all(log, session, raw.FixedLengthRecordReaderV2(**options), Work(*paths))


@case
def a_header_longer_than_its_file(address, log):
    with files(b"abc", b"0123456789") as paths, tf1.Session(address) as session:
        reader, work = raw.FixedLengthRecordReaderV2(record_bytes=2, header_bytes=6), Work(*paths)
        read = raw.ReaderReadV2(reader_handle=reader, queue_handle=work.queue)
        work.begin(session)
        for at in range(4):
            with log.refused(f"{at}"):
                key, value = session.run(read)
                log.value(f"value {at}", [base(key), value])


@case
def compressed_records_of_a_fixed_length(address, log):
    with files(zlib.compress(b"abcdefgh")) as paths, tf1.Session(address) as session:
        read_all(log, session, raw.FixedLengthRecordReaderV2(record_bytes=3, encoding="ZLIB"), Work(*paths))


@case
def what_a_fixed_length_refuses(address, log):
    for at, options in enumerate(({"record_bytes": -1}, {"record_bytes": 1, "header_bytes": -1},
                                  {"record_bytes": 1, "footer_bytes": -1}, {"record_bytes": 1, "hop_bytes": -1})):
        with tf1.Session(address) as session, log.refused(f"{at}"):
            reader = raw.FixedLengthRecordReaderV2(**options)
            session.run(raw.ReaderNumRecordsProducedV2(reader_handle=reader))


@case
def lines_after_a_header(address, log):
    with files(b"# one\n# two\na\nb\n", b"# alone", b"#\n#\nc") as paths, tf1.Session(address) as session:
        read_all(log, session, raw.TextLineReaderV2(skip_header_lines=2), Work(*paths))


@case
def compressed_records(address, log):
    values = (b"first", b"", b"x" * 5000)
    for compression in ("ZLIB", "GZIP"):
        data = records(*values, compression=compression)
        with files(data, data) as paths, tf1.Session(address) as session:
            read_all(log, session, raw.TFRecordReaderV2(compression_type=compression), Work(*paths))


@case
def damaged_records(address, log):
    good = records(b"first", b"second")
    for at, data in enumerate((good[:30], good[:5], good[:15], good[:19],
                                good[:13] + b"F" + good[14:], good[:3] + b"\x01" + good[4:], b"no records")):
        with files(data) as paths, tf1.Session(address) as session:
            read_all(log, session, raw.TFRecordReaderV2(), Work(*paths))


@case
def files_that_are_not_there(address, log):
    with files(b"abc") as paths, tf1.Session(address) as session:
        for name in ("whole_file", "text_line", "tf_record", "fixed_length"):
            reader, work = READERS[name](), Work(paths[0] + "-not", paths[0])
            read = raw.ReaderReadV2(reader_handle=reader, queue_handle=work.queue)
            work.begin(session)
            for at in range(3):
                with log.refused(f"{name} {at}"):
                    log.value(f"{name} {at} read", session.run(read)[1])


@case
def a_queue_of_something_else(address, log):
    with tf1.Session(address) as session:
        for at, (dtype, value) in enumerate(((tf.int32, 3), (tf.string, ["a", "b"]))):
            queue = raw.FIFOQueueV2(component_types=[dtype])
            reader = raw.IdentityReaderV2()
            session.run(raw.QueueEnqueueV2(handle=queue, components=[tf.constant(value, dtype)]))
            with log.refused(f"{at}"):
                session.run(raw.ReaderReadV2(reader_handle=reader, queue_handle=queue))


@case
def a_read_that_waits_for_work(address, log):
    with tf1.Session(address) as session:
        reader, work = raw.IdentityReaderV2(), Work("late", close=False)
        read = raw.ReaderReadV2(reader_handle=reader, queue_handle=work.queue)
        # What fills the queue comes later in the same step.
        with tf.control_dependencies([tf.reduce_sum(tf.matmul(tf.ones([700, 700]), tf.ones([700, 700])))]):
            fill = raw.QueueEnqueueManyV2(handle=work.queue, components=[tf.constant(["late"])])
            close = raw.QueueCloseV2(handle=work.queue)
        log.value("found", list(session.run([read, fill])[0]))
        with log.refused("closed"):
            session.run([read, close])


@case
def a_read_that_waits_is_ended_by_its_limit(address, log):
    with tf1.Session(address) as session:
        reader, work = raw.IdentityReaderV2(), Work("then", close=False)
        read = raw.ReaderReadV2(reader_handle=reader, queue_handle=work.queue)
        with log.refused("limit"):
            session.run(read, options=tf1.RunOptions(timeout_in_ms=400))
        work.begin(session)
        log.value("then", list(session.run(read)))


@case
def sessions_share_a_reader(address, log):
    name = f"{tf1.get_variable_scope().name}/shared"

    def read(work):
        return raw.ReaderReadV2(reader_handle=raw.TextLineReaderV2(shared_name=name), queue_handle=work.queue)

    with files(b"a\nb\nc\n") as paths, tf1.Session(address) as first, tf1.Session(address) as second:
        work = Work(*paths)
        work.begin(first)
        log.value("first", first.run(read(work))[1])
        # The item in progress is the reader's, whatever queue the call names.
        empty = Work("none", close=False)
        log.value("second", second.run(read(empty))[1])
        log.value("first again", first.run(read(work))[1])


@case
def readers_by_reference(address, log):
    with files(b"abc\nde", b"fgh") as paths, tf1.Session(address) as session:
        queue = raw.FIFOQueue(component_types=[tf.string], shapes=[[]])
        reader = raw.WholeFileReader()
        session.run(raw.QueueEnqueueMany(handle=queue, components=[tf.constant(paths)]))
        session.run(raw.QueueClose(handle=queue))
        read = raw.ReaderRead(reader_handle=reader, queue_handle=queue)
        some = raw.ReaderReadUpTo(reader_handle=reader, queue_handle=queue, num_records=5)
        key, value = session.run(read)
        log.value("read", [base(key), base(value)])
        keys, values = session.run(some)
        log.value("some", [base(keys), values])
        with log.refused("end"):
            session.run(read)
        log.value("counts", session.run([
            raw.ReaderNumRecordsProduced(reader_handle=reader),
            raw.ReaderNumWorkUnitsCompleted(reader_handle=reader)]))
        state = session.run(raw.ReaderSerializeState(reader_handle=reader))
        session.run(raw.ReaderReset(reader_handle=reader))
        session.run(raw.ReaderRestoreState(reader_handle=reader, state=state))
        log.value("restored", session.run(raw.ReaderNumRecordsProduced(reader_handle=reader)))


@case
def a_pipeline_of_the_client(address, log):
    examples = [tf.train.Example(features=tf.train.Features(feature={
        "x": tf.train.Feature(int64_list=tf.train.Int64List(value=[at]))})).SerializeToString() for at in range(6)]
    with files(records(*examples[:4]), records(*examples[4:])) as paths:
        queue = tf1.FIFOQueue(10, [tf.string], shapes=[[]])
        enqueue = queue.enqueue_many([tf.constant(paths)])
        _, value = tf1.TFRecordReader().read(queue)
        x = tf.io.parse_single_example(value, {"x": tf.io.FixedLenFeature([], tf.int64)})["x"]
        with tf1.Session(address) as session:
            session.run(enqueue)
            session.run(queue.close())
            seen = []
            try:
                while True:
                    seen.append(int(session.run(x)))
            except tf.errors.OutOfRangeError:
                log.same("seen", seen)


@case
def a_mutex_keeps_others_out(address, log):
    mutex = raw.MutexV2(shared_name=f"{tf1.get_variable_scope().name}/m")
    v = tf1.get_variable("v", initializer=np.float32(0), use_resource=True)
    lock = raw.MutexLock(mutex=mutex)
    with tf.control_dependencies([lock]):
        read = v.read_value()
    with tf.control_dependencies([v.assign(read + 1, read_value=False)]):
        done = raw.ConsumeMutexLock(mutex_lock=lock)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        threads = [threading.Thread(target=lambda: [session.run(done) for _ in range(10)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log.value("sum", session.run(v))


@case
def a_lock_in_a_step_that_waits(address, log):
    name = f"{tf1.get_variable_scope().name}/m"

    def locked():
        lock = raw.MutexLock(mutex=raw.MutexV2(shared_name=name))
        return lock

    with tf1.Session(address) as session:
        first = locked()
        with tf.control_dependencies([first]):
            second = locked()
        with tf.control_dependencies([second]):
            both = raw.ConsumeMutexLock(mutex_lock=first)
        with log.refused("a lock that the step holds"):
            session.run(both, options=tf1.RunOptions(timeout_in_ms=500))
        once = raw.ConsumeMutexLock(mutex_lock=locked())
        session.run(once)
        session.run(once)
        log.same("free", True)


@case
def a_critical_section_of_the_client(address, log):
    section = tf.CriticalSection(name=tf1.get_variable_scope().name + "-section")
    v = tf1.get_variable("v", initializer=np.float32(0), use_resource=True)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        add = section.execute(lambda: v.assign_add(1.0))
        for _ in range(3):
            session.run(add)
        log.value("value", session.run(v))


@case
def a_mutex_that_is_none(address, log):
    v = tf1.get_variable("v", initializer=np.float32(0), use_resource=True)
    with tf1.Session(address) as session:
        session.run(v.initializer)
        with log.refused("lock"):
            session.run(raw.ConsumeMutexLock(mutex_lock=raw.MutexLock(mutex=v.handle)))
