"""Calls of a server without TensorFlow's client, which gives neither handles nor variants to a graph."""

import grpc
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.protobuf import named_tensor_pb2

Field = descriptor_pb2.FieldDescriptorProto
GRAPH = ".tensorflow.GraphDef"
NAMED = ".tensorflow.NamedTensorProto"

# The fields of master.proto that are used here: message, then name, number, type (None: text), whether it is repeated.
MESSAGES = {
    "CreateSessionRequest": [("graph_def", 1, GRAPH, False)],
    "CreateSessionResponse": [("session_handle", 1, None, False)],
    "RunStepRequest": [("session_handle", 1, None, False), ("feed", 2, NAMED, True), ("fetch", 3, None, True),
                       ("target", 4, None, True)],
    "RunStepResponse": [("tensor", 1, NAMED, True)],
    "CloseSessionRequest": [("session_handle", 1, None, False)],
    "CloseSessionResponse": [],
}


def classes():
    file = descriptor_pb2.FileDescriptorProto(name="tests/client/master.proto", package="tenon.tests", syntax="proto3")
    file.dependency.extend(["tensorflow/core/framework/graph.proto", named_tensor_pb2.DESCRIPTOR.name])
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, is_repeated in fields:
            label = Field.LABEL_REPEATED if is_repeated else Field.LABEL_OPTIONAL
            made = message.field.add(name=field, number=number, label=label, type=Field.TYPE_STRING)
            if kind:
                made.type, made.type_name = Field.TYPE_MESSAGE, kind
    pool = descriptor_pool.Default()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tenon.tests.{name}")) for name in MESSAGES}


CLASSES = classes()


class Wire:
    """A session whose steps are given and give TensorProto."""

    def __init__(self, address, graph=None):
        self.channel = grpc.insecure_channel(address[len("grpc://"):], options=[
            ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
        graph = (graph or tf.compat.v1.get_default_graph()).as_graph_def()
        self.handle = self.call("CreateSession", graph_def=graph).session_handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("CloseSession", session_handle=self.handle)
        self.channel.close()

    def named(self, name, tensor):
        return named_tensor_pb2.NamedTensorProto(name=name, tensor=tensor)

    def call(self, method, timeout=30, **fields):
        request, response = CLASSES[method + "Request"], CLASSES[method + "Response"]
        return self.channel.unary_unary(
            f"/tensorflow.MasterService/{method}", request_serializer=request.SerializeToString,
            response_deserializer=response.FromString)(request(**fields), timeout=timeout)

    def run(self, fetches=(), feeds=(), targets=()):
        """The fetched TensorProto, or the name of the code by which the step is refused."""
        feeds = [self.named(name, tensor) for name, tensor in dict(feeds).items()]
        try:
            answer = self.call("RunStep", session_handle=self.handle, feed=feeds, fetch=list(fetches), target=list(targets))
        except grpc.RpcError as error:
            return error.code().name
        return [named.tensor for named in answer.tensor]
