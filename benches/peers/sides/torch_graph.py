"""PyTorch: the ONNX form of a graph, node by node as functions of PyTorch with channels last, traced, frozen and
optimised for inference."""

from collections.abc import Callable

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from prepared import Case

VERSION = torch.__version__
Values = dict[str, torch.Tensor]


class Step(torch.nn.Module):
    """A case as a frozen module."""

    def __init__(self, case: Case, threads: int):
        super().__init__()
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        graph = onnx.load(case.file(".onnx")).graph
        self.constants = {tensor.name: torch.from_numpy(array(tensor)) for tensor in graph.initializer}
        self.nodes = [Node(node, self.constants) for node in graph.node]
        self.feeds, self.names = list(case.feeds), list(case.fetches)
        self.fed = [channels_last(torch.from_numpy(x)) for x in case.fed_channels_first().values()]
        traced = torch.jit.trace(self.eval(), tuple(self.fed), check_trace=False)
        self.frozen = torch.jit.optimize_for_inference(torch.jit.freeze(traced))
        self.run()

    def forward(self, *fed: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The whole graph; traced once."""
        values: Values = self.constants | dict(zip(self.feeds, fed))
        for node in self.nodes:
            node(values)
        return tuple(values[name] for name in self.names)

    def run(self) -> None:
        """One step."""
        self.fetched = self.frozen(*self.fed)

    def results(self) -> dict[str, np.ndarray]:
        """What the last step gave."""
        return {name: value.numpy() for name, value in zip(self.names, self.fetched)}


class Node:
    """A node of the graph: takes values by name, adds its own."""

    def __init__(self, node: onnx.NodeProto, constants: Values):
        self.inputs, self.output = list(node.input), node.output[0]
        self.attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        if node.op_type not in OPS:
            raise ValueError(f"{node.op_type} has no function of PyTorch here: add it to OPS")
        self.function = OPS[node.op_type]
        if node.op_type == "Conv":
            constants[self.inputs[1]] = channels_last(constants[self.inputs[1]])

    def __call__(self, values: Values) -> None:
        values[self.output] = self.function(self.attributes, *(values[name] for name in self.inputs if name))


def array(tensor: onnx.TensorProto) -> np.ndarray:
    """A constant, to be written to."""
    return numpy_helper.to_array(tensor).copy()


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """The same values, with the channels of one pixel side by side."""
    return x.to(memory_format=torch.channels_last) if x.dim() == 4 else x


def window(attributes: dict, x: torch.Tensor, fill: float) -> tuple[torch.Tensor, list[int]]:
    """A convolution's or pool's input, and the padding left to the op: it pads both sides alike."""
    top, left, bottom, right = attributes.get("pads", [0, 0, 0, 0])
    if (top, left) == (bottom, right):
        return x, [top, left]
    return F.pad(x, [left, right, top, bottom], value=fill), [0, 0]


def conv(attributes: dict, x: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    x, padding = window(attributes, x, 0.0)
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    return F.conv2d(x, filters, bias, strides, padding, dilations, attributes.get("group", 1))


def max_pool(attributes: dict, x: torch.Tensor) -> torch.Tensor:
    x, padding = window(attributes, x, -float("inf"))
    return F.max_pool2d(x, attributes["kernel_shape"], attributes.get("strides"), padding)


def squeeze(_: dict, x: torch.Tensor, axes: torch.Tensor) -> torch.Tensor:
    return torch.squeeze(x, tuple(axes.tolist()))


def reduce_mean(attributes: dict, x: torch.Tensor) -> torch.Tensor:
    return x.mean(attributes["axes"], keepdim=bool(attributes.get("keepdims", 1)))


OPS: dict[str, Callable[..., torch.Tensor]] = {
    "Add": lambda _, x, y: x + y,
    "Clip": lambda _, x, low, high: torch.clamp(x, float(low), float(high)),
    "Conv": conv,
    "Erf": lambda _, x: torch.erf(x),
    "GlobalAveragePool": lambda _, x: F.adaptive_avg_pool2d(x, 1),
    "Identity": lambda _, x: x,
    "MatMul": lambda _, x, y: torch.matmul(x, y),
    "MaxPool": max_pool,
    "Mul": lambda _, x, y: x * y,
    "Reciprocal": lambda _, x: torch.reciprocal(x),
    "ReduceMean": reduce_mean,
    "Relu": lambda _, x: F.relu(x),
    "Reshape": lambda _, x, shape: x.reshape(shape.tolist()),
    "Softmax": lambda attributes, x: torch.softmax(x, attributes.get("axis", -1)),
    "Sqrt": lambda _, x: torch.sqrt(x),
    "Squeeze": squeeze,
    "Sub": lambda _, x, y: x - y,
    "Transpose": lambda attributes, x: x.permute(attributes["perm"]),
}
