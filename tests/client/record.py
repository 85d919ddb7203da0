"""Records the cases as goldens that need no TensorFlow: record.py FOLDER [FILE...], all files of cases without names.

Each case runs against TensorFlow's server. The steps of its session go to FOLDER: a file of cases to an index and an
archive, in the form of tests/goldens/README.md, "sequences". Cases that do more than run steps of one session, or
fetch handles, are left out, and listed.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading

import numpy as np

import harness

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "goldens"))


# Ops whose results are the process's own.
OF_PROCESS = {"IteratorToStringHandle"}
# Ops whose results may stand in any order.
UNORDERED = {"LookupTableExport", "LookupTableExportV2", "RandomShuffleQueue", "RandomShuffleQueueV2"}


class Recorder:
    """The steps of the session of one case."""

    def __init__(self):
        self.steps, self.arrays, self.graph, self.session, self.unfit = [], {}, None, None, None

    def refuse(self, why):
        self.unfit = self.unfit or why

    def keep(self, key, tensor, array):
        from gen import store
        from gen.data import dtype_name
        array = np.asarray(array, object) if isinstance(array, (bytes, str)) else np.asarray(array)
        if array.dtype.kind in "OU":
            words = [word.encode() if isinstance(word, str) else word for word in array.ravel()]
            array = np.array(words, object).reshape(array.shape)
        try:
            plain = np.asarray(store.storable(array))
            self.arrays[key] = array
            return {"tensor": tensor, "array": key, "dtype": dtype_name(np.asarray(array)), "shape": list(plain.shape)}
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            self.refuse(f"{tensor}: {error}")
            return {"tensor": tensor}

    def step(self, session, run, targets, fetches, feeds, theirs):
        """Runs a step and keeps what it gives; the code of a refusal is that of TensorFlow's own sessions."""
        from tensorflow.python.framework import errors_impl
        if self.session not in (None, session) or threading.current_thread() is not threading.main_thread():
            self.refuse("several sessions or threads")
        if any(tensor.op.type in OF_PROCESS for tensor in fetches):
            self.refuse("texts that name what a process made")
        self.session, self.graph = session, session.graph
        number = len(self.steps)
        names = [tensor.name for tensor in fetches]
        kept = [self.keep(f"{number}.feed{at}", name, a) for at, (name, a) in enumerate(feeds.items())]
        step = {"feeds": kept, "fetches": [{"tensor": name} for name in names]}
        if targets:
            step["targets"] = [target.name for target in targets]
        self.steps.append(step)
        try:
            results = run()
        except errors_impl.OpError as error:
            name = theirs.get(type(error).__name__, type(error).__name__)
            step["error"] = codes()[name]
            raise
        step["fetches"] = [
            self.keep(f"{number}.out{at}", name, array) for at, (name, array) in enumerate(zip(names, results))]
        return results


def codes():
    """The canonical codes, by the names of their exceptions."""
    from tensorflow.python.framework import errors_impl
    kinds = [kind for kind in vars(errors_impl).values() if isinstance(kind, type)]
    made = {name: code for name, code in vars(errors_impl).items() if name.isupper() and isinstance(code, int)}
    by_code = {code: name for name, code in made.items()}
    classes = {
        kind.__name__: by_code[number] for number in by_code
        for kind in kinds if errors_impl._CODE_TO_EXCEPTION_CLASS.get(number) is kind}
    return classes


def watch(recorder, log):
    """Has the sessions of this process recorded."""
    from tensorflow.python.client import session as sessions
    run = sessions.BaseSession._do_run

    def recorded(self, handle, target_list, fetch_list, feed_dict, options, run_metadata):
        current = recorder[0]
        if handle is not None or options is not None or run_metadata is not None:
            current.refuse("partial runs, options or metadata")
        feeds = {tensor.deref().name: array for tensor, array in feed_dict.items()}

        def one():
            return run(self, handle, target_list, fetch_list, feed_dict, options, run_metadata)
        return current.step(self, one, target_list, fetch_list, feeds, log[0].theirs)
    sessions.BaseSession._do_run = recorded
    for name in ("_make_callable_from_options", "partial_run_setup", "list_devices"):
        def unfit(self, *args, original=getattr(sessions.BaseSession, name), name=name, **options):
            recorder[0].refuse(name)
            return original(self, *args, **options)
        setattr(sessions.BaseSession, name, unfit)
    reset = sessions.Session.reset

    def resetting(*args, **options):
        recorder[0].refuse("reset")
        return reset(*args, **options)
    sessions.Session.reset = staticmethod(resetting)


class Log(harness.Log):
    """A log that says how the codes of the current block are read."""

    def __init__(self):
        super().__init__()
        self.theirs = {}

    def refused(self, name, theirs=()):
        import contextlib

        @contextlib.contextmanager
        def block():
            self.theirs = dict(theirs)
            with harness.Log.refused(self, name, theirs):
                yield
            self.theirs = {}
        return block()


def record(module, address, folder):
    """Records the cases of a file, in a process of its own."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    from gen import store
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity("ERROR")
    before = set(harness.CASES)
    __import__(module)
    recorder, log = [None], [None]
    watch(recorder, log)
    entries, arrays, left = [], {}, []
    for name in [name for name in harness.CASES if name not in before]:
        recorder[0], log[0] = Recorder(), Log()
        with tf.Graph().as_default(), tf1.variable_scope(name):
            harness.CASES[name](address, log[0])
        kept = recorder[0]
        graph = kept.graph.as_graph_def() if kept.graph is not None else tf1.GraphDef()
        written = graph.SerializeToString(deterministic=True)
        here = tempfile.gettempdir().encode()
        if here in written or any(here in np.asarray(array).tobytes() or here in repr(array).encode()
                                  for array in kept.arrays.values()):
            kept.refuse("files of its own")
        if any(node.op in UNORDERED for node in graph.node):
            kept.refuse("what it gives has no order")
        if kept.unfit or not kept.steps:
            left.append(f"{name}: {kept.unfit or 'no steps'}")
            continue
        arrays[f"{name}.graph"] = np.frombuffer(written, np.uint8)
        arrays |= {f"{name}.{key}": array for key, array in kept.arrays.items()}
        entry = {"name": name, "about": (harness.CASES[name].__doc__ or name.replace("_", " ")).strip()}
        entry |= {"arrays": f"{module}.npz", "prefix": f"{name}."}
        entry |= {"ops": sorted({node.op for node in graph.node})}
        entry["tolerance"] = getattr(harness.CASES[name], "tolerance", {"absolute": 1e-5, "relative": 1e-5})
        if getattr(harness.CASES[name], "reason", None):
            entry["reason"] = harness.CASES[name].reason
        entries.append(entry | {"runs": kept.steps})
    if entries:
        store.write_npz(folder / f"{module}.npz", arrays)
        store.write_index(folder / f"{module}.json", {"tensorflow": tf.__version__}, "graphs", entries)
    print(f"{module}: {len(entries)} cases, left out {len(left)}", *left, sep="\n  ", flush=True)


def main(folder, *files):
    here = pathlib.Path(__file__).parent
    sys.path.insert(0, str(here))
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(here.glob("cases_*.py")):
        if files and file.stem not in files:
            continue
        theirs = [sys.executable, "-c", harness.THEIRS, str(harness.free_port())]
        server = subprocess.Popen(theirs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        try:
            address = server.stdout.readline().strip()
            command = [sys.executable, __file__, "--file", file.stem, address, str(folder)]
            subprocess.run(command, check=True)
        finally:
            server.kill()


if __name__ == "__main__":
    if sys.argv[1] == "--file":
        record(sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]))
    else:
        main(*sys.argv[1:])
