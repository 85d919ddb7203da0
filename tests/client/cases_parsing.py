"""Tensors from serialised examples, tensors and raw bytes."""

import gzip
import zlib

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops


def feature(value):
    value = np.asarray(value)
    if value.dtype.kind in "SO":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=value.tolist()))
    if value.dtype.kind == "f":
        return tf.train.Feature(float_list=tf.train.FloatList(value=value.tolist()))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value.tolist()))


def example(**features):
    made = {name: feature(value) for name, value in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


EXAMPLES = [example(i=[1, 2], i2=[8, 9], f=[0.5, 1.5], s=[b"a"], v=[1, 2, 3]), example(i=[3, -4], f=[2.5, 3.5], s=[b"", b"bc"]),
            example(i=[5, 1 << 40], f=[4.5, 5.5], v=[7])]


def parse(serialized, sparse=(), dense=(), names=()):
    """Names and types of sparse features; names, shapes and defaults of dense ones."""
    return raw.ParseExample(
        serialized=serialized, names=list(names) or np.zeros([0], "S1"), sparse_keys=[key for key, _ in sparse],
        sparse_types=[dtype for _, dtype in sparse], dense_keys=[key for key, _, _ in dense],
        dense_shapes=[shape for _, shape, _ in dense], dense_defaults=[default for _, _, default in dense])


def values(outputs):
    return [list(part) if isinstance(part, list) else part for part in outputs]


SPARSE = (("s", tf.string), ("i", tf.int64), ("f", tf.float32), ("missing", tf.float32))
NO_INTS, NO_FLOATS, NO_TEXTS = np.zeros([0], np.int64), np.zeros([0], np.float32), np.zeros([0], "S1")


@case
def sparse_features(address, log):
    with tf1.Session(address) as session:
        log.value("values", values(session.run(parse(EXAMPLES, SPARSE))))


@case
def dense_features(address, log):
    dense = (("i", [2], NO_INTS), ("f", [2, 1], NO_FLOATS), ("x", [3], np.float32([7, 8, 9])), ("y", [], np.int64(4)))
    with tf1.Session(address) as session:
        log.value("values", values(session.run(parse(EXAMPLES, SPARSE[:1], dense))))


@case
def dense_strings(address, log):
    dense = (("s", [], np.array(b"default")), ("t", [2], np.array([b"x", b"y"])))
    examples = [example(s=[b"here"]), example(t=[b"p", b"q"])]
    with tf1.Session(address) as session:
        log.value("values", values(session.run(parse(examples, (), dense))))


@case
def dense_features_of_any_length(address, log):
    dense = (("v", tf.TensorShape([None]), np.int64([-1])), ("f", tf.TensorShape([None, 2]), np.float32([9])))
    with tf1.Session(address) as session:
        log.value("values", values(session.run(parse(EXAMPLES, (), dense))))


@case
def no_examples(address, log):
    dense = (("i", [2], NO_INTS), ("v", tf.TensorShape([None]), np.int64([-1])))
    with tf1.Session(address) as session:
        log.value("values", values(session.run(parse(np.zeros([0], "S1"), SPARSE, dense))))


@case
def the_last_of_equal_names_counts(address, log):
    twice = EXAMPLES[0] + example(i=[100, 200])
    with tf1.Session(address) as session:
        log.value("values", values(session.run(parse([twice], SPARSE[1:2], (("i", [2], NO_INTS),)[:0]))))


@case
def lists_that_are_not_packed(address, log):
    # Feature {int64_list {value: 5 value: 6}} and {float_list {value: 1}}, each number a field of its own.
    def entry(name, body):
        feature = bytes([len(body)]) + body
        inner = b"\x0a\x01" + name + b"\x12" + feature
        return b"\x0a" + bytes([len(inner)]) + inner

    features = entry(b"i", b"\x1a\x04\x08\x05\x08\x06") + entry(b"f", b"\x12\x05\x0d\x00\x00\x80\x3f")
    message = b"\x0a" + bytes([len(features)]) + features
    with tf1.Session(address) as session:
        log.value("values", values(session.run(parse([message], SPARSE[1:3]))))


@case
def what_examples_are_refused(address, log):
    def refused(name, *args, **options):
        with log.refused(name):
            session.run(parse(*args, **options))

    with tf1.Session(address) as session:
        refused("no message", ["\x0a\x02\x0a\x05"], SPARSE)
        refused("missing", EXAMPLES, (), (("x", [1], NO_FLOATS),))
        refused("another length", EXAMPLES, (), (("i", [3], NO_INTS),))
        refused("another type, dense", EXAMPLES, (), (("i", [2], NO_FLOATS),))
        refused("another type, sparse", EXAMPLES, (("i", tf.float32),))
        refused("no multiple", EXAMPLES, (), (("v", tf.TensorShape([None, 2]), np.int64([0])),))
        refused("names", EXAMPLES, SPARSE, names=["a", "b"])
        named = parse(EXAMPLES, SPARSE[:1], names=["a", "b", "c"])
        log.value("named", values(session.run(named)))


@case
def defaults_of_other_shapes(address, log):
    default = tf1.placeholder(tf.int64)
    fixed = parse(EXAMPLES, (), (("i", [2], default),))
    free = parse(EXAMPLES, (), (("v", tf.TensorShape([None]), default),))
    with tf1.Session(address) as session:
        for shape in ([3], [1, 2], []):
            with log.refused(f"fixed {shape}"):
                session.run(fixed.dense_values, {default: np.zeros(shape, np.int64)})
        for shape in ([2], [0]):
            with log.refused(f"free {shape}"):
                session.run(free.dense_values, {default: np.zeros(shape, np.int64)})


def parse_v2(serialized, sparse=(), dense=(), ragged=()):
    return raw.ParseExampleV2(
        serialized=serialized, names=np.zeros([0], "S1"),
        sparse_keys=np.array([key for key, _ in sparse], object) if sparse else np.zeros([0], "S1"),
        dense_keys=np.array([key for key, _, _ in dense], object) if dense else np.zeros([0], "S1"),
        ragged_keys=np.array([key for key, _, _ in ragged], object) if ragged else np.zeros([0], "S1"),
        dense_defaults=[default for _, _, default in dense], num_sparse=len(sparse),
        sparse_types=[dtype for _, dtype in sparse], ragged_value_types=[dtype for _, dtype, _ in ragged],
        ragged_split_types=[splits for _, _, splits in ragged], dense_shapes=[shape for _, shape, _ in dense])


# A name is wanted once.
APART = (("s", tf.string), ("f", tf.float32), ("missing", tf.float32))
RAGGED = (("v", tf.int64, tf.int32), ("t", tf.string, tf.int64))
DENSE = (("i", [2], NO_INTS), ("x", [2], np.float32([7, 8])))


@case
def ragged_features(address, log):
    with tf1.Session(address) as session:
        log.value("values", values(session.run(parse_v2(EXAMPLES, APART, DENSE, RAGGED))))
        log.value("none", values(session.run(parse_v2(np.zeros([0], "S1"), APART, DENSE, RAGGED))))


@case
def one_example_of_the_second_form(address, log):
    with tf1.Session(address) as session:
        for at, one in enumerate(EXAMPLES):
            log.value(f"{at}", values(session.run(parse_v2(one, APART, DENSE, RAGGED))))


@case
def a_single_example(address, log):
    free = (("v", tf.TensorShape([None]), np.int64([-1])),)
    with tf1.Session(address) as session:
        for at, one in enumerate(EXAMPLES):
            for name, dense in (("fixed", DENSE), ("free", free)):
                parsed = raw.ParseSingleExample(
                    serialized=one, dense_defaults=[default for _, _, default in dense], num_sparse=len(APART),
                    sparse_keys=[key for key, _ in APART], dense_keys=[key for key, _, _ in dense],
                    sparse_types=[dtype for _, dtype in APART], dense_shapes=[shape for _, shape, _ in dense])
                log.value(f"{at} {name}", values(session.run(parsed)))


@case
def what_a_single_example_refuses(address, log):
    def refused(name, serialized, sparse=(), dense=()):
        with log.refused(name):
            session.run(raw.ParseSingleExample(
                serialized=serialized, dense_defaults=[default for _, _, default in dense], num_sparse=len(sparse),
                sparse_keys=[key for key, _ in sparse], dense_keys=[key for key, _, _ in dense],
                sparse_types=[dtype for _, dtype in sparse], dense_shapes=[shape for _, shape, _ in dense]))

    with tf1.Session(address) as session:
        refused("no message", b"\x0a\x02\x0a\x05", SPARSE)
        refused("missing", EXAMPLES[0], (), (("x", [1], NO_FLOATS),))
        refused("another length", EXAMPLES[0], (), (("i", [3], NO_INTS),))
        refused("another type, dense", EXAMPLES[0], (), (("i", [2], NO_FLOATS),))
        refused("another type, sparse", EXAMPLES[0], (("i", tf.float32),))


@case
def examples_through_the_client_s_functions(address, log):
    kinds = {"i": tf.io.FixedLenFeature([2], tf.int64), "s": tf.io.VarLenFeature(tf.string),
             "v": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
             "r": tf.io.RaggedFeature(tf.int64, value_key="i2")}
    batch = tf.io.parse_example(EXAMPLES, kinds)
    single = tf.io.parse_single_example(EXAMPLES[0], {key: kinds[key] for key in ("i", "s")})
    with tf1.Session(address) as session:
        got = session.run(batch)
        log.value("i", got["i"])
        log.value("v", got["v"])
        log.value("s", [got["s"].indices, got["s"].values, got["s"].dense_shape])
        log.value("r", [got["r"].values, got["r"].row_splits])
        one = session.run(single)
        log.value("one", [one["i"], one["s"].values])


def sequence(context, lists):
    """A sequence example: features, and lists of features."""
    made = {name: tf.train.FeatureList(feature=[feature(step) for step in steps]) for name, steps in lists.items()}
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={name: feature(value) for name, value in context.items()}),
        feature_lists=tf.train.FeatureLists(feature_list=made)).SerializeToString()


SEQUENCES = [
    sequence({"i": [1, 2], "s": [b"a", b"b"]}, {"d": [[1, 2], [3, 4]], "w": [[b"x"], NO_TEXTS, [b"y", b"z"]]}),
    sequence({"i": [3, 4]}, {"d": [[5, 6]], "w": [], "f": [[0.5], [1.5]]}),
    sequence({"i": [5, 6], "s": [b"c"]}, {"d": []}),
]


def parse_sequences(serialized, dense=(("d", tf.int64, [2]),), lacking=(), context_dense=(("i", [2], NO_INTS),)):
    return raw.ParseSequenceExample(
        serialized=serialized, debug_name=np.zeros([0], "S1"),
        context_dense_defaults=[default for _, _, default in context_dense],
        feature_list_dense_missing_assumed_empty=list(lacking), context_sparse_keys=["s"],
        context_dense_keys=[key for key, _, _ in context_dense], feature_list_sparse_keys=["w"],
        feature_list_dense_keys=[key for key, _, _ in dense], Ncontext_sparse=1, Ncontext_dense=len(context_dense),
        Nfeature_list_sparse=1, Nfeature_list_dense=len(dense), context_sparse_types=[tf.string],
        feature_list_dense_types=[dtype for _, dtype, _ in dense],
        context_dense_shapes=[shape for _, shape, _ in context_dense], feature_list_sparse_types=[tf.string],
        feature_list_dense_shapes=[shape for _, _, shape in dense])


@case
def sequence_examples(address, log):
    with tf1.Session(address) as session:
        log.value("values", values(session.run(parse_sequences(SEQUENCES))))
        both = (("d", tf.int64, [2]), ("f", tf.float32, [1]))
        log.value("lacking", values(session.run(parse_sequences(SEQUENCES, both, lacking=["f"]))))


@case
def what_sequence_examples_are_refused(address, log):
    with tf1.Session(address) as session:
        for name, serialized, options in (
                ("no message", ["\x0a\x02\x0a\x05"], {}), ("no list", SEQUENCES, {"dense": (("f", tf.float32, [1]),)}),
                ("another length", SEQUENCES, {"dense": (("d", tf.int64, [3]),)}),
                ("another type", SEQUENCES, {"dense": (("d", tf.float32, [2]),)}),
                ("no feature", SEQUENCES, {"context_dense": (("x", [1], NO_FLOATS),)})):
            with log.refused(name):
                session.run(parse_sequences(serialized, **options))


TENSORS = {
    "float": np.float32([[1, 2], [3, 4]]), "double": np.float64(7), "int32": np.int32([1, -2]), "int64": np.int64([1 << 40]),
    "int16": np.int16([-3, 4]), "int8": np.int8([-1]), "uint8": np.uint8([200]), "uint16": np.uint16([60000]),
    "uint32": np.uint32([1 << 31]), "uint64": np.uint64([1 << 63]), "half": np.float16([1.5, -2]),
    "bool": np.array([True, False]), "complex64": np.complex64([1 + 2j]), "complex128": np.complex128([1 - 2j]),
    "string": np.array([b"a", b"", b"long enough to be no short string"], object), "empty": np.zeros([0, 3], np.float32),
}


def each_tensor():
    for name, value in TENSORS.items():
        def run(address, log, value=value):
            dtype = tf.string if value.dtype == object else tf.as_dtype(value.dtype)
            serialized = raw.SerializeTensor(tensor=value)
            with tf1.Session(address) as session:
                log.value("bytes", session.run(serialized))
                log.value("back", session.run(raw.ParseTensor(serialized=serialized, out_type=dtype)))
                for at, message in enumerate((tf.make_tensor_proto(value), tf.make_tensor_proto(value.ravel()[:1], shape=[3])
                                              if value.size else tf.make_tensor_proto(value))):
                    parsed = raw.ParseTensor(serialized=message.SerializeToString(), out_type=dtype)
                    log.value(f"message {at}", session.run(parsed))
        run.__name__ = f"a_serialised_tensor_of_{name}"
        case(run)


each_tensor()


@case
def fields_of_one_type(address, log):
    messages = {
        "floats": (tf.float32, 'dtype: DT_FLOAT tensor_shape { dim { size: 4 } } float_val: 1 float_val: 2'),
        "doubles": (tf.float64, 'dtype: DT_DOUBLE tensor_shape { dim { size: 2 } } double_val: 1.5'),
        "ints": (tf.int32, 'dtype: DT_INT32 tensor_shape { dim { size: 3 } } int_val: -1 int_val: 2'),
        "bytes": (tf.int8, 'dtype: DT_INT8 tensor_shape { dim { size: 3 } } int_val: -1 int_val: 2'),
        "longs": (tf.int64, 'dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: -7'),
        "bools": (tf.bool, 'dtype: DT_BOOL tensor_shape { dim { size: 2 } } bool_val: true'),
        "halves": (tf.float16, 'dtype: DT_HALF tensor_shape { dim { size: 2 } } half_val: 15360'),
        "complex": (tf.complex64, 'dtype: DT_COMPLEX64 tensor_shape { dim { size: 2 } } scomplex_val: 1 scomplex_val: 2'),
        "texts": (tf.string, 'dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: "a" string_val: "b"'),
        "nothing": (tf.float32, 'dtype: DT_FLOAT tensor_shape { dim { size: 2 } }'),
        "unsigned": (tf.uint32, 'dtype: DT_UINT32 tensor_shape { dim { size: 2 } } uint32_val: 4000000000'),
        "long unsigned": (tf.uint64, 'dtype: DT_UINT64 tensor_shape { } uint64_val: 5'),
    }
    from google.protobuf import text_format
    from tensorflow.core.framework import tensor_pb2
    with tf1.Session(address) as session:
        for name, (dtype, text) in messages.items():
            message = text_format.Parse(text, tensor_pb2.TensorProto()).SerializeToString()
            log.value(name, session.run(raw.ParseTensor(serialized=message, out_type=dtype)))


@case
def what_serialised_tensors_are_refused(address, log):
    good = tf.make_tensor_proto(np.float32([1, 2])).SerializeToString()
    cut = tf.make_tensor_proto(np.float32([1, 2]))
    cut.tensor_content = cut.tensor_content[:5]
    negative = tf.make_tensor_proto(np.float32([1, 2]))
    negative.tensor_shape.dim[0].size = -2
    with tf1.Session(address) as session:
        for name, message, dtype in (("another type", good, tf.int32), ("no message", b"\xff\xff", tf.float32),
                                     ("content of another size", cut.SerializeToString(), tf.float32),
                                     ("a negative size", negative.SerializeToString(), tf.float32),
                                     ("nothing", b"", tf.float32)):
            with log.refused(name):
                session.run(raw.ParseTensor(serialized=message, out_type=dtype))
        texts = tf1.placeholder(tf.string)
        with log.refused("a vector"):
            session.run(raw.ParseTensor(serialized=texts, out_type=tf.float32), {texts: [good]})


@case
def compressed_strings(address, log):
    texts = [b"", b"text", b"x" * 10000]
    with tf1.Session(address) as session:
        for name, packed in (("", texts), ("ZLIB", [zlib.compress(text) for text in texts]),
                             ("GZIP", [gzip.compress(text) for text in texts])):
            log.value(name, session.run(raw.DecodeCompressed(bytes=packed, compression_type=name)))
        for name in ("ZLIB", "GZIP"):
            with log.refused(name):
                session.run(raw.DecodeCompressed(bytes=[b"no such bytes"], compression_type=name))
        with log.refused("another compression"):
            session.run(raw.DecodeCompressed(bytes=texts, compression_type="LZ4"))


@case
def raw_bytes_that_are_padded(address, log):
    texts = np.array([[b"\x01\x02\x03\x04"], [b"\x05\x06"], [b"\x01\x02\x03\x04\x05\x06\x07\x08\x09"], [b""]], object)
    with tf1.Session(address) as session:
        for dtype in (tf.uint8, tf.int16, tf.uint16, tf.int32, tf.int64, tf.float32, tf.float64, tf.int8):
            for little in (True, False):
                if dtype in (tf.uint8, tf.int8) and not little:
                    continue
                decoded = raw.DecodePaddedRaw(
                    input_bytes=texts[:2], fixed_length=8, out_type=dtype, little_endian=little)
                log.value(f"{dtype.name} {little}", session.run(decoded))
        log.value("cut", session.run(raw.DecodePaddedRaw(input_bytes=texts, fixed_length=4, out_type=tf.uint8)))
        length = tf1.placeholder(tf.int32)
        decoded = raw.DecodePaddedRaw(input_bytes=texts, fixed_length=length, out_type=tf.int32)
        for bad in (0, -4, 6):
            with log.refused(f"{bad}"):
                session.run(decoded, {length: bad})


def decoded(*texts):
    """Features of examples in JSON."""
    serialized = raw.DecodeJSONExample(json_examples=list(texts))
    return parse(serialized, sparse=[("i", tf.int64), ("f", tf.float32), ("s", tf.string)])


def json_of(**lists):
    return '{"features": {"feature": {%s}}}' % ", ".join(f'"{name}": {text}' for name, text in lists.items())


@case
def examples_in_json(address, log):
    texts = [
        json_of(i='{"int64List": {"value": [1, "-2", 3.0, "9223372036854775807", 12e2]}}'),
        json_of(f='{"float_list": {"value": [1.5, "2.25", "NaN", "-Infinity", 1]}}',
                s='{"bytesList": {"value": ["YQ==", "YmM", "", "-_8="]}}'),
        json_of(i='{"int64List": {}}', f="{}", s='{"bytes_list": {"value": []}}'),
        "{}", '{"features": null}', ' {"features": {"feature": {}}} ']
    with tf1.Session(address) as session:
        log.value("parsed", [list(part) for part in session.run(decoded(*texts))[:3]])
        log.value("one", session.run(raw.DecodeJSONExample(
            json_examples=json_of(i='{"int64List": {"value": [1, 300]}}'))))


@case
def what_is_no_example_in_json(address, log):
    texts = {
        "no json": "{", "a list": "[]", "another field": '{"feature": {}}', "a text": '"text"', "nothing": "",
        "a list that is a number": json_of(i='{"int64List": {"value": 1}}'),
        "half a number": json_of(i='{"int64List": {"value": [1.5]}}'),
        "too large": json_of(i='{"int64List": {"value": [9223372036854775808]}}'),
        "a float too large": json_of(f='{"floatList": {"value": [1e39]}}'),
        "no base64": json_of(s='{"bytesList": {"value": ["*"]}}'),
        "two lists": json_of(i='{"int64List": {"value": [1]}, "floatList": {"value": [1]}}'),
        "another list": json_of(i='{"doubleList": {"value": [1]}}'),
        "a truth": json_of(i='{"int64List": {"value": [true]}}')}
    text = tf1.placeholder(tf.string, [])
    decode = raw.DecodeJSONExample(json_examples=text)
    with tf1.Session(address) as session:
        for name, value in texts.items():
            with log.refused(name):
                session.run(decode, {text: value})
