"""Sessions: a graph, its variables, and the steps that run over it."""

from __future__ import annotations

import functools
from collections.abc import Callable as CallableOf
from collections.abc import Iterable, Mapping, Sequence

from . import _native
from .errors import InvalidArgumentError
from .graph import Graph, Node, Output, graph_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    #: What a step fetches: an output, a node or a name, or tuples, lists and dicts of these.
    Fetches = Any
    #: Values by output or name.
    Feeds = Mapping[Any, Any]


def tensor_name(value: Any, graph: Graph) -> str:
    """The name of a tensor that a step is fed with or fetches."""
    if isinstance(value, str):
        return value
    if isinstance(value, Output):
        if value.graph is not graph:
            raise InvalidArgumentError(f"expected outputs of the session's graph, found {value!r} of another one")
        return value.name
    raise TypeError(f"expected an output or a name, found {type(value).__name__}")


def _has_outputs(graph: Graph, name: str) -> bool:
    id = graph._native.find(name)
    return id is None or graph._native.node(id)[5] > 0


class _Plan:
    """The tensors and nodes of nested fetches, and how their values are put together."""

    __slots__ = ("build", "names", "targets")

    def __init__(self, fetches: Fetches, graph: Graph) -> None:
        self.names: list[str] = []
        self.targets: list[str] = []
        self.build: CallableOf[[Sequence[Any]], Any] = self._part(fetches, graph)

    def _part(self, fetch: Fetches, graph: Graph) -> CallableOf[[Sequence[Any]], Any]:
        if isinstance(fetch, Node):
            if fetch.graph is not graph:
                raise InvalidArgumentError(f"expected nodes of the session's graph, found {fetch!r} of another one")
            self.targets.append(fetch.name)
            return lambda values: None
        if isinstance(fetch, str) and ":" not in fetch and not _has_outputs(graph, fetch):
            self.targets.append(fetch)
            return lambda values: None
        if isinstance(fetch, Mapping):
            parts = [(key, self._part(item, graph)) for key, item in fetch.items()]
            return lambda values: {key: part(values) for key, part in parts}
        if isinstance(fetch, (list, tuple)):
            built = [self._part(item, graph) for item in fetch]
            if isinstance(fetch, list):
                return lambda values: [part(values) for part in built]
            kind = type(fetch)
            if hasattr(kind, "_make"):
                return lambda values: kind._make(part(values) for part in built)
            return lambda values: tuple(part(values) for part in built)
        at = len(self.names)
        self.names.append(tensor_name(fetch, graph))
        return lambda values: values[at]


class Session:
    """Runs steps over a graph.

    ``Session(graph)`` runs in this process. ``Session("grpc://host:port", graph)`` runs on a server, of Tenon's or TensorFlow's.
    Without a graph, it is the default graph. Several threads may use one session. Steps run without Python's lock, and Ctrl-C
    cancels a step of the main thread.
    """

    def __init__(
        self,
        target: str | Graph | None = None,
        graph: Graph | None = None,
        *,
        device: str | None = None,
        soft_placement: bool | None = None,
        keep_denormals: bool = False,
        knobs: Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(target, Graph):
            if graph is not None:
                raise TypeError("expected Session(graph) or Session(target, graph), found two graphs")
            target, graph = None, target
        self.graph: Graph = graph_of(graph)
        self.target: str = target or ""
        self._options: dict[str, Any] = {
            "device": device,
            "soft_placement": soft_placement,
            "keep_denormals": keep_denormals,
            "knobs": dict(knobs or {}),
        }
        self._session = _native.Session(target or None, self.graph._native, **self._options)
        self._plans: dict[Any, tuple[_native.Callable, CallableOf[[Sequence[Any]], Any]]] = {}

    # Steps

    def run(
        self,
        fetches: Fetches,
        feeds: Feeds | None = None,
        *,
        targets: Iterable[Node | str] = (),
        deadline: float | None = None,
        token: _native.CancelToken | None = None,
    ) -> Any:
        """Runs one step, and returns the values in the structure of the fetches. Nodes have `None`.

        `deadline` is in seconds. `token` cancels the step from another thread.
        """
        given = feeds or {}
        kind = type(fetches)
        structure = fetches if kind is str or kind is Output else _key(fetches)
        key = (structure, tuple(given), tuple(targets) if targets else ())
        found = self._plans.get(key)
        if found is None:
            found = self._plan(fetches, list(given), list(targets))
            if len(self._plans) >= 1024:
                self._plans.clear()
            self._plans[key] = found
        step, build = found
        if deadline is None and token is None:
            return build(step(*given.values()))
        return build(step(*given.values(), deadline=deadline, token=token))

    def _plan(
        self, fetches: Fetches, feeds: list[Any], targets: list[Node | str]
    ) -> tuple[_native.Callable, CallableOf[[Sequence[Any]], Any]]:
        plan = _Plan(fetches, self.graph)
        names = [tensor_name(feed, self.graph) for feed in feeds]
        ran = plan.targets + [target if isinstance(target, str) else target.name for target in targets]
        return self._session.prepare(names, plan.names, ran), plan.build

    async def run_async(
        self, fetches: Fetches, feeds: Feeds | None = None, *, deadline: float | None = None
    ) -> Any:
        """As `run`, beside the event loop. A task that is cancelled cancels its step."""
        # Programs without an event loop do not pay for it.
        import asyncio

        token = _native.CancelToken()
        run = functools.partial(self.run, fetches, feeds, deadline=deadline, token=token)
        waiting = asyncio.get_running_loop().run_in_executor(None, run)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            token.cancel()
            # The step ends soon; its error is of no use.
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise

    def callable(
        self,
        feeds: Sequence[Output | str],
        fetches: Output | str | Sequence[Output | str],
        *,
        targets: Iterable[Node | str] = (),
        raw: bool = False,
    ) -> _native.Callable:
        """A step with its feeds and fetches resolved: the fast path.

        Call it with the values of the feeds, in order. It returns the value of a single fetch, or a list. `out=[...]` copies the
        values into arrays, and `deadline` and `token` are those of `run`. With `raw=True` values are `tenon.Tensor` objects.
        """
        single = not isinstance(fetches, (list, tuple))
        wanted = [fetches] if single else list(fetches)
        return self._session.prepare(
            [tensor_name(feed, self.graph) for feed in feeds],
            [tensor_name(fetch, self.graph) for fetch in wanted],
            [target if isinstance(target, str) else target.name for target in targets],
            single=single,
            raw=raw,
        )

    def partial_run(
        self, feeds: Sequence[Output | str], fetches: Sequence[Output | str], *, targets: Iterable[Node | str] = ()
    ) -> Partial:
        """A step that is fed and fetched in parts."""
        names = [tensor_name(feed, self.graph) for feed in feeds]
        wanted = [tensor_name(fetch, self.graph) for fetch in fetches]
        ran = [target if isinstance(target, str) else target.name for target in targets]
        return Partial(self._session.partial_run(names, wanted, ran), self.graph)

    # What is known of it

    def devices(self) -> list[str]:
        """The names of the devices on which steps run."""
        return self._session.devices()

    def plan(
        self, fetches: Fetches, feeds: Iterable[Output | str] = (), *, targets: Iterable[Node | str] = ()
    ) -> list[dict[str, Any]]:
        """The nodes of a step as it runs: name, op, device, and plugin and label of the kernel."""
        plan = _Plan(fetches, self.graph)
        names = [tensor_name(feed, self.graph) for feed in feeds]
        ran = plan.targets + [target if isinstance(target, str) else target.name for target in targets]
        return self._session.plan(names, plan.names, ran)

    def refresh(self) -> None:
        """Takes over plugins that were loaded since; variables keep their values."""
        self._session.refresh()
        self._plans.clear()

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._session.closed

    def close(self) -> None:
        """Cancels the steps in flight, and refuses new ones. Later calls do nothing."""
        self._plans.clear()
        self._session.close()

    def __enter__(self) -> Session:
        self.graph.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.graph.__exit__()
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_reopened, (self.target, self.graph, self._options))

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.target or "in this process"
        return f"<tenon.Session over {len(self.graph)} nodes, {state}>"

    def _repr_html_(self) -> str:
        import html

        devices = "" if self.closed else ", ".join(self.devices())
        return f"<div><b>{html.escape(repr(self))}</b><br>{html.escape(devices)}</div>"

    def _ipython_key_completions_(self) -> list[str]:
        return self.graph._ipython_key_completions_()


class Partial:
    """A step that is fed and fetched in parts."""

    def __init__(self, run: _native.PartialRun, graph: Graph) -> None:
        self._run = run
        self._graph = graph

    def run(self, fetches: Sequence[Output | str], feeds: Feeds | None = None) -> list[Any]:
        """Feeds and fetches a part. Each tensor is fed once, and fetched once."""
        given = [(tensor_name(name, self._graph), value) for name, value in (feeds or {}).items()]
        return self._run.run_part(given, [tensor_name(fetch, self._graph) for fetch in fetches])

    def cancel(self) -> None:
        """Cancels the step."""
        self._run.cancel()

    @property
    def done(self) -> bool:
        """Whether the step has ended."""
        return self._run.done


def _key(fetches: Fetches) -> Any:
    """A key for nested fetches, which may be lists and dicts."""
    if isinstance(fetches, list):
        return (list, *map(_key, fetches))
    if isinstance(fetches, tuple):
        return (type(fetches), *map(_key, fetches))
    if isinstance(fetches, Mapping):
        return (dict, *((name, _key(item)) for name, item in fetches.items()))
    return fetches


def _reopened(target: str, graph: Graph, options: dict[str, Any]) -> Session:
    return Session(target or None, graph, **options)
