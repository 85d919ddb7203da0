"""Writes sample messages with TensorFlow's own protobuf classes.

    pip install tensorflow-cpu==2.21.0      (in a throw-away virtual environment)
    python make.py

Reads fields.txt beside it, compares it with TensorFlow's descriptors, and writes one <message>.bin
per message: records, each preceded by its length as a varint. All fields that both sides know are
set in at least one record; what only one side knows is printed and left out. The messages of the
services of master and worker have no class in TensorFlow's wheel: theirs is made of fields.txt, around
TensorFlow's own messages. The last record of a file has every sub-message present but empty.
graph.pb is the graph of a small program with a function, a loop, variables and constants, as TensorFlow exports it.
"""

import itertools
import pathlib
import sys

import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf import any_pb2
from tensorflow.core.framework import (  # noqa: F401 (fill the pool)
    cost_graph_pb2, device_attributes_pb2, graph_pb2, step_stats_pb2, tensor_pb2, tensor_shape_pb2)
from tensorflow.core.util import event_pb2  # noqa: F401
from tensorflow.core.protobuf import (  # noqa: F401
    config_pb2, debug_pb2, named_tensor_pb2, saved_model_pb2, tensor_bundle_pb2, tensorflow_server_pb2)

HERE = pathlib.Path(__file__).parent
SCALARS = {
    F.TYPE_STRING: "string", F.TYPE_BYTES: "bytes", F.TYPE_INT32: "int32", F.TYPE_INT64: "int64",
    F.TYPE_UINT32: "uint32", F.TYPE_UINT64: "uint64", F.TYPE_BOOL: "bool", F.TYPE_FLOAT: "float",
    F.TYPE_DOUBLE: "double", F.TYPE_FIXED32: "fixed32", F.TYPE_FIXED64: "fixed64",
}


def read_fields():
    """The text of each field line by message and number."""
    messages, current = {}, None
    for line in (HERE / "fields.txt").read_text().splitlines():
        if line.startswith("#") or not line:
            continue
        if not line.startswith(" "):
            current = messages.setdefault(line, {})
        else:
            number, rest = line.split(maxsplit=1)
            current[int(number)] = rest
    return messages


# Parts of requests and responses of services.
PARTS = ("ExecutorOpts", "LabeledStepStats", "StepSequence", "TraceOpts")


def short(name):
    return name.removeprefix("tensorflow.")


def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def describe_type(field, known):
    if field.message_type is not None:
        name = short(field.message_type.full_name)
        return f"{'message' if name in known else 'raw'} {name}"
    if field.enum_type is not None:
        return f"enum {short(field.enum_type.full_name)}"
    return SCALARS[field.type]


def describe(field, known):
    """A descriptor in the notation of fields.txt."""
    if is_map(field):
        key, value = field.message_type.fields
        return f"{field.name} map {describe_type(key, known)} {describe_type(value, known)}"
    label = "repeated " if field.is_repeated else ""
    if field.containing_oneof is not None:
        label = f"oneof {field.containing_oneof.name} "
    return f"{field.name} {label}{describe_type(field, known)}"


def add_services(known):
    """Makes the messages that TensorFlow's wheel has no class of: requests and responses of services."""
    file = descriptor_pb2.FileDescriptorProto(
        name="services.proto", package="tensorflow", syntax="proto3",
        dependency=[pb.DESCRIPTOR.name for pb in (
            any_pb2, config_pb2, cost_graph_pb2, debug_pb2, device_attributes_pb2, graph_pb2, named_tensor_pb2,
            step_stats_pb2, tensor_pb2, tensor_shape_pb2, tensorflow_server_pb2)])
    scalars = {name: number for number, name in SCALARS.items()}
    for name, fields in known.items():
        if not name.endswith(("Request", "Response")) and name not in PARTS:
            continue
        message = file.message_type.add(name=name)
        for number, text in fields.items():
            words = text.split()
            field = message.field.add(name=words[0], number=number, label=F.LABEL_OPTIONAL)
            if words[1] == "repeated":
                field.label = F.LABEL_REPEATED
            if words[-2] in ("message", "raw"):
                package = "" if words[-1].startswith("google.") else "tensorflow."
                field.type, field.type_name = F.TYPE_MESSAGE, f".{package}{words[-1]}"
            else:
                field.type = scalars[words[-1]]
    descriptor_pool.Default().Add(file)


def compare(known):
    """Descriptors by message name; prints every difference and returns how many there were."""
    pool, found, differences = descriptor_pool.Default(), {}, 0
    for name, fields in known.items():
        try:
            descriptor = pool.FindMessageTypeByName("tensorflow." + name)
        except KeyError:
            print(f"skipped: TensorFlow has no message {name}")
            differences += 1
            continue
        found[name] = descriptor
        theirs = {field.number: describe(field, known) for field in descriptor.fields}
        for number in sorted(theirs.keys() | fields.keys()):
            if theirs.get(number) != fields.get(number):
                print(f"skipped: {name} {number}: here {fields.get(number)!r}, "
                      f"TensorFlow {theirs.get(number)!r}")
                differences += 1
    return found, differences


class Filler:
    """Fills one record. A message type is filled with its sub-messages the first time it is met and
    without them from then on, which keeps recursive types and the record's size finite."""

    def __init__(self, known, variant):
        self.known, self.variant = known, variant
        self.count = itertools.count(1)
        self.turns, self.met = {}, set()

    def scalar(self, field):
        n = next(self.count)
        sign = -1 if n % 2 else 1
        if field.enum_type is not None:
            values = [value.number for value in field.enum_type.values if value.number != 0]
            return values[n % len(values)] if values else 0
        return {
            F.TYPE_STRING: lambda: f"{field.name}-{n}-\u00e4",
            F.TYPE_BYTES: lambda: bytes([n % 256, 0xFF, 0]),
            F.TYPE_INT32: lambda: sign * (0x7FFF0000 + n), F.TYPE_INT64: lambda: sign * (2**62 + n),
            F.TYPE_SINT32: lambda: sign * n, F.TYPE_SINT64: lambda: sign * n,
            F.TYPE_UINT32: lambda: 2**32 - n, F.TYPE_UINT64: lambda: 2**64 - n,
            F.TYPE_FIXED32: lambda: 2**32 - n, F.TYPE_FIXED64: lambda: 2**64 - n,
            F.TYPE_BOOL: lambda: True, F.TYPE_FLOAT: lambda: sign * (n + 0.25),
            F.TYPE_DOUBLE: lambda: sign * (n + 0.1),
        }[field.type]()

    def pick(self, oneof):
        """The member to set: the next one at every occurrence of the oneof in the record."""
        turn = self.turns[oneof.full_name] = self.turns.get(oneof.full_name, self.variant - 1) + 1
        return oneof.fields[turn % len(oneof.fields)].number

    def fill(self, message):
        descriptor = message.DESCRIPTOR
        nested = descriptor.full_name not in self.met
        self.met.add(descriptor.full_name)
        picked = {self.pick(oneof) for oneof in descriptor.oneofs}
        known = self.known.get(short(descriptor.full_name))
        for field in descriptor.fields:
            if known is not None and field.number not in known:
                continue
            if field.containing_oneof is None or field.number in picked:
                self.set(message, field, nested)
        return message

    def set(self, message, field, nested):
        if is_map(field):
            self.set_map(getattr(message, field.name), field, nested)
        elif field.message_type is None and field.is_repeated:
            getattr(message, field.name).extend([self.scalar(field), self.scalar(field)])
        elif field.message_type is None:
            setattr(message, field.name, self.scalar(field))
        elif field.is_repeated and nested:
            self.fill(getattr(message, field.name).add())
            self.fill(getattr(message, field.name).add())
        elif not field.is_repeated:
            getattr(message, field.name).SetInParent()
            if nested:
                self.fill(getattr(message, field.name))

    def set_map(self, entries, field, nested):
        key, value = field.message_type.fields
        for _ in range(2):
            if value.message_type is None:
                entries[self.scalar(key)] = self.scalar(value)
            elif nested:
                self.fill(entries[self.scalar(key)])


def records(descriptor, known):
    kind = message_factory.GetMessageClass(descriptor)
    variants = max([len(oneof.fields) for oneof in descriptor.oneofs], default=1)
    made = [Filler(known, variant).fill(kind()) for variant in range(variants)]
    present = {field.number for message in made for field, _ in message.ListFields()}
    numbers = known[short(descriptor.full_name)].keys() & descriptor.fields_by_number.keys()
    assert numbers <= present, (descriptor.full_name, numbers - present)
    hollow = kind()
    for field in descriptor.fields:
        if field.message_type is not None and field.number in numbers and not field.is_repeated:
            getattr(hollow, field.name).SetInParent()
    return made + [hollow]


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def program():
    """The exported graph of a small program."""

    @tf.function
    def halve(x):
        return tf.while_loop(lambda v: tf.reduce_sum(v) > 1.0, lambda v: (v / 2.0,), (x,))[0]

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 3], name="x")
        w = tf.Variable(tf.ones([3, 2]), name="w", use_resource=True)
        y = halve(tf.matmul(x, w))
        tf.strings.join([tf.strings.as_string(y), tf.constant(b"\xff end")], name="text")
        return graph.as_graph_def()


def main():
    known = read_fields()
    add_services(known)
    found, differences = compare(known)
    for name, descriptor in found.items():
        encoded = [m.SerializeToString(deterministic=True) for m in records(descriptor, known)]
        data = b"".join(varint(len(record)) + record for record in encoded)
        (HERE / f"{name}.bin").write_bytes(data)
    (HERE / "graph.pb").write_bytes(program().SerializeToString(deterministic=True))
    print(f"{len(found)} messages written, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
