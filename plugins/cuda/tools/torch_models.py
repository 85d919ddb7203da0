"""ResNet50 and a layer of BERT-base for PyTorch, with random weights, and the same as graphs for Tenon.

The graphs are spelled as TensorFlow freezes such models: channels last, batch normalisation with fixed statistics, layer
normalisation and GELU by their formulas. In bfloat16 they are fed float32, as PyTorch's side is, and cast it themselves.
ResNet50: K. He et al., "Deep Residual Learning for Image Recognition", 2015, with the stride in the 3x3 convolution.
BERT: J. Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2018.
"""

import math

import torch
from torch import nn

from graphdef import BFLOAT16, FLOAT, Graph, Type

DTYPES = {"f32": (torch.float32, FLOAT), "bf16": (torch.bfloat16, BFLOAT16)}


class Bottleneck(nn.Module):
    """Three convolutions and what goes past them."""

    def __init__(self, channels: int, inner: int, stride: int):
        super().__init__()
        outer = 4 * inner
        self.convs = nn.ModuleList([
            nn.Conv2d(channels, inner, 1, bias=False),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
            nn.Conv2d(inner, outer, 1, bias=False),
        ])
        self.norms = nn.ModuleList([nn.BatchNorm2d(inner), nn.BatchNorm2d(inner), nn.BatchNorm2d(outer)])
        changes = stride != 1 or channels != outer
        self.past = nn.Conv2d(channels, outer, 1, stride, bias=False) if changes else None
        self.past_norm = nn.BatchNorm2d(outer) if changes else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """relu(convolutions(x) + x)"""
        past = x if self.past is None else self.past_norm(self.past(x))
        for conv, norm in zip(self.convs[:2], self.norms[:2], strict=True):
            x = torch.relu(norm(conv(x)))
        return torch.relu(self.norms[2](self.convs[2](x)) + past)


class ResNet50(nn.Module):
    """`image` [batch, 3, side, side] to 1000 classes."""

    inputs = ("image",)

    def __init__(self, stages: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, side: int = 224):
        super().__init__()
        self.side = side
        self.stem = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.stem_norm = nn.BatchNorm2d(width)
        blocks, channels = [], width
        for stage, count in enumerate(stages):
            for block in range(count):
                inner = width << stage
                blocks.append(Bottleneck(channels, inner, 2 if stage and not block else 1))
                channels = 4 * inner
        self.blocks = nn.Sequential(*blocks)
        self.dense = nn.Linear(channels, 1000)

    def feeds(self, batch: int) -> list[torch.Tensor]:
        """On the host, in float32, as PyTorch likes images: channels last in memory."""
        image = torch.randn(batch, 3, self.side, self.side)
        return [image.to(memory_format=torch.channels_last)]

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """The classes' scores."""
        x = torch.relu(self.stem_norm(self.stem(image.to(self.dense.weight.dtype))))
        x = torch.max_pool2d(x, 3, 2, 1)
        return self.dense(self.blocks(x).mean((2, 3)))

    def graph(self, dtype: int) -> Graph:
        """The same for Tenon, with `image` [batch, side, side, 3] and `output`."""
        g = Graph(dtype)
        x = cast(g, g.placeholder("image", [-1, self.side, self.side, 3]))
        x = g.node("Relu", [normed(g, conv(g, x, self.stem), self.stem_norm)])
        # Zeros are as good as nothing, after a Relu.
        x = padded(g, x, 1)
        x = g.node("MaxPool", [x], ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="VALID", data_format="NHWC")
        for block in self.blocks:
            past = x if block.past is None else normed(g, conv(g, x, block.past), block.past_norm)
            for at in range(3):
                x = normed(g, conv(g, x, block.convs[at]), block.norms[at])
                if at < 2:
                    x = g.node("Relu", [x])
            x = g.node("Relu", [g.node("AddV2", [x, past])])
        x = g.node("Mean", [x, g.integers(1, 2)], Tidx=Type(3), keep_dims=False)
        dense(g, x, self.dense, name="output")
        return g

    def tenon_feed(self, x: torch.Tensor) -> torch.Tensor:
        """As the graph takes it."""
        return x.permute(0, 2, 3, 1).contiguous()


class BertLayer(nn.Module):
    """`hidden` [batch, length, width] to the same: self attention and GELU, each with a residual and a norm after it."""

    inputs = ("hidden",)

    def __init__(self, width: int = 768, heads: int = 12, inner: int = 3072, length: int = 128):
        super().__init__()
        self.width, self.heads, self.length = width, heads, length
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

    def feeds(self, batch: int) -> list[torch.Tensor]:
        """On the host, in float32."""
        return [torch.randn(batch, self.length, self.width)]

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, length, width] to [batch, heads, length, width / heads]"""
        return x.view(x.shape[0], self.length, self.heads, -1).transpose(1, 2)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """By PyTorch's fused attention."""
        x = hidden.to(self.query.weight.dtype)
        parts = (self.split(layer(x)) for layer in (self.query, self.key, self.value))
        context = nn.functional.scaled_dot_product_attention(*parts)
        x = self.norm1(self.out(context.transpose(1, 2).reshape(x.shape)) + x)
        return self.norm2(self.down(nn.functional.gelu(self.up(x))) + x)

    def graph(self, dtype: int) -> Graph:
        """The same for Tenon, with `hidden` and `output`."""
        g = Graph(dtype)
        hidden = cast(g, g.placeholder("hidden", [-1, self.length, self.width]))
        x = reshaped(g, hidden, -1, self.width)

        def split(part: str) -> str:
            part = reshaped(g, part, -1, self.length, self.heads, self.width // self.heads)
            return transposed(g, part)

        query, key, value = (split(dense(g, x, layer)) for layer in (self.query, self.key, self.value))
        scores = g.node("BatchMatMulV2", [query, key], adj_x=False, adj_y=True)
        scale = scalar(g, 1 / math.sqrt(self.width // self.heads))
        shares = g.node("Softmax", [g.node("Mul", [scores, scale])])
        context = transposed(g, g.node("BatchMatMulV2", [shares, value], adj_x=False, adj_y=False))
        context = reshaped(g, context, -1, self.width)
        x = layer_norm(g, g.node("AddV2", [dense(g, context, self.out), x]), self.norm1)
        wide = dense(g, x, self.up)
        erf = g.node("Erf", [g.node("RealDiv", [wide, scalar(g, math.sqrt(2))])])
        half = g.node("Mul", [scalar(g, 0.5), wide])
        gelu = g.node("Mul", [half, g.node("AddV2", [scalar(g, 1.0), erf])])
        x = layer_norm(g, g.node("AddV2", [dense(g, gelu, self.down), x]), self.norm2)
        g.node("Reshape", [x, g.integers(-1, self.length, self.width)], "output", Tshape=Type(3))
        return g

    def tenon_feed(self, x: torch.Tensor) -> torch.Tensor:
        """As the graph takes it."""
        return x


# Of a few channels, for machines without a GPU.
SMALL = {
    "resnet50": {"stages": (1, 1, 1, 1), "width": 8, "side": 64},
    "bert_layer": {"width": 32, "heads": 4, "inner": 64, "length": 12},
}
MODELS = {"resnet50": ResNet50, "bert_layer": BertLayer}


def cast(g: Graph, x: str) -> str:
    """To the graph's dtype."""
    if g.dtype == FLOAT:
        return x
    return g.node("Cast", [x], T=None, SrcT=Type(FLOAT), DstT=Type(g.dtype), Truncate=False)


def scalar(g: Graph, value: float) -> str:
    """A constant."""
    return g.weights(torch.tensor(value))


def padded(g: Graph, x: str, by: int) -> str:
    """Zeros around images."""
    data = torch.tensor([[0, 0], [by, by], [by, by], [0, 0]], dtype=torch.int32)
    sizes = g.constant(3, [4, 2], b"".join(int(n).to_bytes(4, "little") for n in data.flatten()))
    return g.node("Pad", [x, sizes], Tpaddings=Type(3))


def conv(g: Graph, x: str, of: nn.Conv2d) -> str:
    """A convolution: padded by as much on each side, which TensorFlow's SAME does not do for a stride of 2."""
    by, stride = of.padding[0], of.stride[0]
    same = stride == 1 or of.kernel_size[0] == 1
    if by and not same:
        x = padded(g, x, by)
    padding = "SAME" if same and by else "VALID"
    attrs = {"strides": [1, stride, stride, 1], "dilations": [1, 1, 1, 1], "data_format": "NHWC"}
    return g.node("Conv2D", [x, g.weights(of.weight.permute(2, 3, 1, 0))], padding=padding, **attrs)


def normed(g: Graph, x: str, of: nn.BatchNorm2d) -> str:
    """Batch normalisation with fixed statistics, which are float32."""
    told = [g.weights(each, FLOAT) for each in (of.weight, of.bias, of.running_mean, of.running_var)]
    attrs = {"U": Type(FLOAT), "epsilon": of.eps, "is_training": False, "data_format": "NHWC"}
    return g.node("FusedBatchNormV3", [x, *told], **attrs)


def dense(g: Graph, x: str, of: nn.Linear, name: str = "") -> str:
    """A product and its bias."""
    product = g.node("MatMul", [x, g.weights(of.weight.t())], transpose_a=False, transpose_b=False)
    return g.node("BiasAdd", [product, g.weights(of.bias)], name, data_format="NHWC")


def layer_norm(g: Graph, x: str, of: nn.LayerNorm) -> str:
    """Over the last axis, by its formula."""
    axis = g.integers(1)
    mean = g.node("Mean", [x, axis], Tidx=Type(3), keep_dims=True)
    squares = g.node("SquaredDifference", [x, mean])
    variance = g.node("Mean", [squares, axis], Tidx=Type(3), keep_dims=True)
    inverse = g.node("Rsqrt", [g.node("AddV2", [variance, scalar(g, of.eps)])])
    factor = g.node("Mul", [inverse, g.weights(of.weight)])
    rest = g.node("Sub", [g.weights(of.bias), g.node("Mul", [mean, factor])])
    return g.node("AddV2", [g.node("Mul", [x, factor]), rest])


def reshaped(g: Graph, x: str, *dims: int) -> str:
    """Other sizes."""
    return g.node("Reshape", [x, g.integers(*dims)], Tshape=Type(3))


def transposed(g: Graph, x: str) -> str:
    """The middle two of four axes exchanged."""
    return g.node("Transpose", [x, g.integers(0, 2, 1, 3)], Tperm=Type(3))
