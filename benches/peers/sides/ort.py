"""ONNX Runtime: a model from its file, inputs and outputs bound, so that a step copies nothing."""

from collections.abc import Callable

import numpy as np
import onnxruntime as ort
from prepared import BATCH, Case

VERSION = ort.__version__
Values = dict[str, ort.OrtValue]


class Step:
    """A case in a session of its own."""

    def __init__(self, case: Case, threads: int, int8: bool = False):
        batch = next(iter(case.feeds.values()))[0]
        self.session = session_of(str(case.file("_int8.onnx" if int8 else ".onnx")), threads, batch)
        fed = {name: ort.OrtValue.ortvalue_from_numpy(x) for name, x in case.fed_channels_first().items()}
        self.fetched = {
            name: ort.OrtValue.ortvalue_from_shape_and_type(shape, np.float32) for name, shape in case.fetches.items()
        }
        self.run = bound(self.session, fed, self.fetched)

    def results(self) -> dict[str, np.ndarray]:
        """What the last step gave."""
        return {name: value.numpy() for name, value in self.fetched.items()}


class QuantisedStep(Step):
    """The int8 form."""

    def __init__(self, case: Case, threads: int):
        super().__init__(case, threads, int8=True)


def bound(session: ort.InferenceSession, fed: Values, fetched: Values) -> Callable[[], None]:
    """A call of one step, without the wrapper in Python that makes the call's options anew."""
    binding, options = session.io_binding(), ort.RunOptions()
    for name, value in fed.items():
        binding.bind_ortvalue_input(name, value)
    for name, value in fetched.items():
        binding.bind_ortvalue_output(name, value)

    def run(_keep=(binding, fed, fetched), inner=binding._iobinding) -> None:
        # A value that was made of an array is the array's memory: it has to stay as long as the binding.
        session._sess.run_with_iobinding(inner, options)

    return run


def session_of(model: str | bytes, threads: int, batch: int | None = None) -> ort.InferenceSession:
    """A session of a file's or a text's model, its threads on cores of their own; a free batch is made known."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    if threads > 1:
        cores = ";".join(str(core + 1) for core in range(1, threads))
        options.add_session_config_entry("session.intra_op_thread_affinities", cores)
    if batch is not None:
        options.add_free_dimension_override_by_name(BATCH, batch)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
