"""Conv3D, Dilation2D, and the gradients of convolutions.

What TensorFlow's CPU refuses is made another way: channels first by transposition, dilated filters as larger ones
with zeros between the weights, groups as one filter with zeros between the groups.
"""

import numpy as np

from .conv import CONVS, DEPTHWISE, window_attrs
from .data import FLOATS, NUMBERS, array, normal, seeded, small
from .layout import to_nchw, to_nhwc
from .suite import EXACT, Suite, ulp
from .windows import around, back, is_first, last, last_format, patches, places, spatial, spread

# label: (image NDHWC, filter, strides, padding, dilations)
VOLUMES = {
    "one": ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1), (1, 1, 1), "VALID", (1, 1, 1)),
    "pointwise": ((2, 2, 3, 2, 4), (1, 1, 1, 4, 3), (1, 1, 1), "SAME", (1, 1, 1)),
    "same": ((2, 3, 4, 5, 2), (2, 3, 3, 2, 3), (1, 1, 1), "SAME", (1, 1, 1)),
    "valid_stride": ((1, 4, 5, 5, 2), (2, 3, 2, 2, 3), (2, 1, 2), "VALID", (1, 1, 1)),
    "same_stride": ((1, 4, 5, 5, 2), (3, 3, 3, 2, 2), (2, 2, 2), "SAME", (1, 1, 1)),
    "dilated": ((1, 4, 5, 5, 2), (2, 2, 2, 2, 2), (1, 1, 1), "SAME", (2, 1, 2)),
    "groups": ((1, 3, 3, 3, 4), (2, 2, 2, 2, 6), (1, 1, 1), "SAME", (1, 1, 1)),
    "empty_batch": ((0, 3, 3, 3, 2), (2, 2, 2, 2, 3), (1, 1, 1), "SAME", (1, 1, 1)),
}
VOLUME_FEW = ["same", "valid_stride", "dilated", "empty_batch"]
PLAIN_FEW = ["same", "valid_stride", "dilated_same", "explicit", "empty_batch"]
FIRST = ["dilated", "explicit", "same", "valid_stride"]  # of these also channels first
LEFT_OUT = ("whole_image", "filter_over_image", "large", "nothing_left", "empty_result", "no_filters", "channels")


class Form:
    """How a gradient's inputs stand: which are images, sizes or filters."""

    def __init__(self, kind, depthwise=False):
        self.kind = kind  # "forward", "input", "filter"
        self.depthwise = depthwise

    def filter_shape(self, case):
        return tuple(case.inputs[1]) if self.kind == "filter" else case.inputs[1].shape

    def image_shape(self, case):
        """The shape of the input, channels last."""
        shape = list(case.inputs[0]) if self.kind == "input" else case.inputs[0].shape
        return tuple([shape[0], *shape[2:], shape[1]] if is_first(case) else shape)

    def groups(self, case):
        return 1 if self.depthwise else self.image_shape(case)[-1] // self.filter_shape(case)[-2]

    def plain_shape(self, case):
        """The filter as TensorFlow's CPU takes it."""
        *taps, channels, outputs = self.filter_shape(case)
        dilations = spatial(case.attrs["dilations"], case.attrs["data_format"])
        taps = [(n - 1) * d + 1 for n, d in zip(taps, dilations)]
        return (*taps, channels * self.groups(case), outputs)

    def blocks(self, case):
        """For each group, where its weights stand in the plain filter."""
        *_, channels, outputs = self.filter_shape(case)
        dilations = spatial(case.attrs["dilations"], case.attrs["data_format"])
        groups = self.groups(case)
        steps = tuple(slice(None, None, d) for d in dilations)
        for group in range(groups):
            part = outputs // groups
            columns = slice(group * part, (group + 1) * part)
            yield (*steps, slice(group * channels, (group + 1) * channels), columns), columns

    def run_as(self, case):
        """The form that TensorFlow's CPU takes."""
        first = case.attrs["data_format"]
        attrs = case.attrs | {"data_format": last_format(first), "dilations": [1] * len(first)}
        attrs["strides"] = around(spatial(case.attrs["strides"], first), attrs["data_format"])
        pads = attrs.get("explicit_paddings")
        if pads:
            pairs = spatial(list(zip(pads[::2], pads[1::2])), first)
            attrs["explicit_paddings"] = [n for pair in around(pairs, attrs["data_format"], (0, 0)) for n in pair]
        plain = self.plain_shape(case)
        inputs = list(case.inputs)
        if self.kind == "input":
            sizes = np.asarray(inputs[0])
            inputs[0] = np.asarray(self.image_shape(case), sizes.dtype)
        else:
            inputs[0] = last(case, inputs[0])
        if len(inputs) == 3:
            inputs[2] = last(case, inputs[2])
        if self.kind == "filter":
            inputs[1] = np.asarray(plain, np.int32)
        else:
            wide = np.zeros(plain, inputs[1].dtype)
            for block, columns in self.blocks(case):
                wide[block] = inputs[1][..., columns]
            inputs[1] = wide

        def results(found):
            if self.kind != "filter":
                return [back(case, found[0])]
            filter_ = np.zeros(self.filter_shape(case), found[0].dtype)
            for block, columns in self.blocks(case):
                filter_[..., columns] = found[0][block]
            return [filter_]

        return inputs, attrs, results

    def reference(self, case):
        """Sums of products, and of their absolute values."""
        image, filter_ = self.image_shape(case), self.filter_shape(case)
        index, out = places(case, image[1:-1], filter_[:-2])
        wide = [np.asarray(x).astype(np.float64) for x in case.inputs]
        pair = [self.sums(case, [f(x) for x in wide], image, filter_, index, out) for f in (np.asarray, np.abs)]
        return [tuple(pair)]

    def sums(self, case, inputs, image, filter_, index, out):
        groups = image[-1] if self.depthwise else image[-1] // filter_[-2]
        channels = image[-1] // groups
        outputs = filter_[-2] * filter_[-1] if self.depthwise else filter_[-1]
        # Groups apart: [.., taps, group, channels of it, outputs of it].
        apart = (index.shape[1], groups, channels, outputs // groups)
        if self.kind != "filter":
            weights = inputs[1].reshape(index.shape[1], channels, groups, outputs // groups).swapaxes(1, 2)
        if self.kind != "input":
            views = patches(last(case, inputs[0]), index).reshape(image[0], len(index), index.shape[1], groups, channels)
        if self.kind != "forward":
            dy = last(case, inputs[2]).reshape(image[0], len(index), groups, outputs // groups)
        if self.kind == "forward":
            y = np.einsum("nokgi,kgif->nogf", views, weights)
            return back(case, y.reshape(image[0], *out, outputs))
        if self.kind == "input":
            parts = np.einsum("nogf,kgif->nokgi", dy, weights)
            return back(case, spread(parts.reshape(*parts.shape[:3], image[-1]), index, image))
        sums = np.einsum("nokgi,nogf->kgif", views, dy)
        assert sums.shape == apart
        return sums.swapaxes(1, 2).reshape(filter_)


def gradient_case(suite, form, dtype, label, spec, data_format, sizes_dtype=np.int32):
    image, filter_, strides, padding, dilations = spec
    rng = seeded(suite.op, dtype, label)
    make = (lambda shape: small(rng, dtype, shape, -9, 10)) if dtype == "int32" else (lambda shape: normal(rng, dtype, shape))
    if len(image) == 4:
        attrs = window_attrs(strides, padding, data_format, dilations)
    else:
        attrs = {"strides": around(strides, data_format), "dilations": around(dilations, data_format)}
        attrs |= {"padding": padding, "data_format": data_format}
    shape = type("Case", (), {"attrs": attrs, "inputs": []})
    _, out = places(shape, image[1:-1], filter_[:-2])
    outputs = filter_[-2] * filter_[-1] if form.depthwise else filter_[-1]
    turned = to_nchw if data_format[1] == "C" else (lambda x: x)
    dy_shape = (image[0], *out, outputs)
    options = {}
    if form.kind == "forward":
        inputs = [turned(make(image)), make(filter_)]
        terms = np.prod(filter_[:-1])
    elif form.kind == "input":
        order = [image[0], image[-1], *image[1:-1]] if data_format[1] == "C" else image
        inputs, options["const"] = [np.asarray(order, sizes_dtype), make(filter_), turned(make(dy_shape))], (0,)
        terms = np.prod(filter_[:-2]) * outputs
    else:
        inputs, options["const"] = [turned(make(image)), np.int32(filter_), turned(make(dy_shape))], (1,)
        terms = np.prod([image[0], *out])
    vias = ["transpose"] if data_format[1] == "C" else []
    vias += ["zero-filled filter"] if set(dilations) != {1} or form.groups(type("C", (), {"attrs": attrs, "inputs": inputs})) > 1 else []
    if vias:
        options |= {"via": ", ".join(vias), "run_as": form.run_as}
    if dtype in FLOATS:
        options |= {"reference": form.reference, "terms": max(int(terms), 1), "stepwise": True}
    name = f"{dtype}_{label}" + ("_channels_first" if data_format[1] == "C" else "")
    suite.case(name, inputs, attrs, **options)


def convolution_gradients(folder):
    """The gradients of Conv2D, DepthwiseConv2dNative and Conv3D, and Conv3D itself."""
    ops = {
        "Conv2DBackpropInput": (Form("input"), CONVS),
        "Conv2DBackpropFilter": (Form("filter"), CONVS),
        "DepthwiseConv2dNativeBackpropInput": (Form("input", True), DEPTHWISE),
        "DepthwiseConv2dNativeBackpropFilter": (Form("filter", True), DEPTHWISE),
        "Conv3D": (Form("forward"), VOLUMES),
        "Conv3DBackpropInputV2": (Form("input"), VOLUMES),
        "Conv3DBackpropFilterV2": (Form("filter"), VOLUMES),
    }
    for op, (form, table) in ops.items():
        suite = Suite(folder, "nn" if form.kind == "forward" else "nn_grad", op)
        formats = ("NDHWC", "NCDHW") if table is VOLUMES else ("NHWC", "NCHW")
        few = VOLUME_FEW if table is VOLUMES else PLAIN_FEW
        for dtype in FLOATS + (["int32"] if op == "Conv2DBackpropInput" else []):
            for label in table if dtype == "float" else [name for name in few if name in table]:
                # TensorFlow leaves the gradient by a depthwise filter of no images as it was allocated.
                if label in LEFT_OUT or (form.depthwise and form.kind == "filter" and label == "empty_batch"):
                    continue
                gradient_case(suite, form, dtype, label, table[label], formats[0])
                if label in (FIRST if dtype == "float" else FIRST[:2]):
                    gradient_case(suite, form, dtype, label, table[label], formats[1])
        if op == "Conv3DBackpropInputV2":
            gradient_case(suite, form, "float", "groups", table["groups"], "NCDHW", np.int64)
        gradient_errors(suite, form, table)
        yield suite.finish()


def without_multiplier(case):
    """A depthwise filter without outputs as one of zeros with one output a channel, of which the gradient is zeros."""
    sizes, w, dy = case.inputs
    channels = w.shape[2]
    return [sizes, np.zeros((*w.shape[:3], 1), w.dtype), np.zeros((*dy.shape[:3], channels), dy.dtype)], case.attrs, list


def gradient_errors(suite, form, table):
    rank = 5 if table is VOLUMES else 4
    middle = (3,) * (rank - 2)
    x = np.ones((1, *middle, 2), np.float32)
    w = np.ones(((2,) * (rank - 2)) + (2, 2), np.float32)
    dy = np.ones((1, *((2,) * (rank - 2)), 4 if form.depthwise else 2), np.float32)
    good = {"strides": [1] * rank, "padding": "VALID"}

    def inputs(x=x, w=w, dy=dy):
        if form.kind == "forward":
            return [x, w]
        return [np.int32(x.shape), w, dy] if form.kind == "input" else [x, np.int32(w.shape), dy]

    const = () if form.kind == "forward" else (0,) if form.kind == "input" else (1,)
    suite.error("stride_batch", inputs(), good | {"strides": [2] + [1] * (rank - 1)}, const=const)
    suite.error("stride_zero", inputs(), good | {"strides": [1] + [0] * (rank - 2) + [1]}, const=const)
    suite.error("strides_length", inputs(), good | {"strides": [1] * (rank - 1)}, const=const)
    suite.error("channels", inputs(x=np.ones((1, *middle, 3), np.float32)), good, const=const)
    suite.error("padding_name", inputs(), good | {"padding": "FULL"}, const=const)
    large = np.ones((5, *w.shape[1:]), np.float32)
    suite.error("filter_too_large", inputs(w=large, dy=dy[:, :0]), good, const=const)
    if form.kind == "forward":
        suite.error("filter_without_outputs", inputs(w=w[..., :0]), good)
        suite.case("float_nothing_left", inputs(w=large[:4]), good)
    if form.kind == "input":
        suite.case("float_nothing_left", inputs(w=large[:4], dy=dy[:, :0]), good, const=const)
    # Of Conv3D, TensorFlow leaves the gradient by the input as it was allocated.
    if form.kind == "filter" or form.kind == "input" and table is not VOLUMES:
        label = "float_no_multiplier" if form.depthwise else "float_no_filters"
        # So it does here.
        undefined = form.depthwise and form.kind == "input"
        options = {"via": "zero-filled filter", "run_as": without_multiplier} if undefined else {}
        suite.case(label, inputs(w=w[..., :0], dy=dy[..., :0]), good, const=const, **options)
    if form.depthwise:
        none = {"x": x[..., :0], "w": w[..., :0, :], "dy": dy[..., :0]}
        suite.case("float_no_channels", inputs(**none), good, const=const)
    if form.kind != "forward":
        suite.error("gradient_rows", inputs(dy=dy[:, :1]), good, const=const)
        suite.error("gradient_batch", inputs(dy=np.concatenate([dy, dy])), good, const=const)
        suite.error("gradient_channels", inputs(dy=dy[..., :1]), good, const=const)
        suite.error("gradient_rank", inputs(dy=dy[0]), good, const=const)
    if form.kind == "input":
        suite.error("sizes_matrix", [np.int32([x.shape]), w, dy], good, const=const)
        suite.error("sizes_negative", [np.int32([1, -3, *x.shape[2:]]), w, dy], good, const=const)
    if form.kind == "filter":
        suite.error("sizes_matrix", [x, np.int32([w.shape]), dy], good, const=const)
        suite.error("sizes_negative", [x, np.int32([-2, *w.shape[1:]]), dy], good, const=const)
    if suite.op == "Conv2DBackpropInput":
        suite.case("float_rows_and_columns", [np.int32([3, 3]), w, dy], good, tolerance=ulp(0), const=const)
        suite.error("sizes_length", [np.int32([1, 3, 3]), w, dy], good, const=const)


def dilation(folder):
    """Dilation2D."""
    suite = Suite(folder, "nn", "Dilation2D")
    forms = {
        "one": ((1, 1, 1, 1), (1, 1, 1), (1, 1), (1, 1), "VALID"),
        "same": ((2, 5, 4, 3), (3, 2, 3), (1, 1), (1, 1), "SAME"),
        "valid": ((1, 5, 6, 2), (2, 3, 2), (2, 1), (1, 1), "VALID"),
        "rates": ((1, 7, 6, 2), (2, 2, 2), (1, 2), (3, 2), "SAME"),
        "empty_batch": ((0, 3, 3, 2), (2, 2, 2), (1, 1), (1, 1), "SAME"),
    }
    for dtype in NUMBERS:
        for label in forms if dtype in ("float", "int32") else ("same", "rates"):
            image, filter_, strides, rates, padding = forms[label]
            rng = seeded("Dilation2D", dtype, label)
            make = normal if dtype in FLOATS else small
            attrs = {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding}
            suite.case(f"{dtype}_{label}", [make(rng, dtype, image), make(rng, dtype, filter_)], attrs, tolerance=EXACT)
    one = {"strides": [1] * 4, "rates": [1] * 4, "padding": "VALID"}
    suite.case("int8_wrapping", [array([[[[100]]]], "int8"), array([[[100]]], "int8")], one)
    special = array([np.nan, np.inf, -np.inf, 1], "float").reshape(4, 1, 1, 1)
    suite.case("float_special", [special, array([[[2]]], "float")], one)
    x, w = np.ones((1, 4, 4, 2), np.float32), np.ones((2, 2, 2), np.float32)
    suite.error("channels", [x, w[..., :1]], one)
    suite.error("image_rank", [x[0], w], one)
    suite.error("filter_rank", [x, w[0]], one)
    suite.error("filter_too_large", [x, np.ones((6, 6, 2), np.float32)], one)
    suite.error("filter_too_large_by_rates", [x, w], one | {"rates": [1, 5, 1, 1]})
    suite.case("float_nothing_left", [x, np.ones((5, 2, 2), np.float32)], one)
    suite.error("stride_batch", [x, w], one | {"strides": [2, 1, 1, 1]})
    suite.error("rate_depth", [x, w], one | {"rates": [1, 1, 1, 2]})
    suite.error("stride_zero", [x, w], one | {"strides": [1, 0, 1, 1]})
    suite.error("rates_length", [x, w], one | {"rates": [1, 1]})
    yield suite.finish()


GROUPS = [convolution_gradients, dilation]
