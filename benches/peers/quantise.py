"""A model's int8 form for ONNX Runtime: static quantisation, activations u8 by minimum and maximum, weights s8 per
output channel, after the graph optimisations that ONNX Runtime recommends before it."""

import tempfile
from pathlib import Path

from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from prepared import Case


class Feeds(quantization.CalibrationDataReader):
    """The one batch that is also measured."""

    def __init__(self, case: Case):
        self.batches = iter([case.fed_channels_first()])

    def get_next(self):
        return next(self.batches, None)


def quantise(case: Case) -> None:
    """Writes `_int8.onnx` beside a model's `.onnx`."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        quant_pre_process(str(case.file(".onnx")), str(plain), skip_symbolic_shape=True)
        quantization.quantize_static(
            plain,
            case.file("_int8.onnx"),
            Feeds(case),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
        )
