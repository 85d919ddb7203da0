"""A server of TensorFlow's protocol in this process."""

from __future__ import annotations

from . import _native


class Server:
    """Serves sessions to clients: `tenon.Session`, or ``tf.compat.v1.Session``, with its `address` as target.

    Sessions share variables by container and name. The server stops at the end of ``with``.
    """

    def __init__(self, listen: str = "127.0.0.1:0", *, sessions: int = 1000, grace: float = 10.0) -> None:
        self._server = _native.Server(listen, sessions=sessions)
        self._grace = grace

    @property
    def address(self) -> str:
        """The target of clients, such as ``grpc://127.0.0.1:2222``."""
        return self._server.address

    @property
    def running(self) -> bool:
        """Whether the server accepts sessions."""
        return self._server.running

    def stop(self, grace: float | None = None) -> None:
        """Stops: steps in flight have `grace` seconds to end, and are then cancelled."""
        self._server.stop(self._grace if grace is None else grace)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<tenon.serving.Server {self.address}{'' if self.running else ', stopped'}>"


def serve(listen: str = "127.0.0.1:0", *, sessions: int = 1000, grace: float = 10.0) -> Server:
    """Starts a server in this process. Port 0 takes a free one."""
    return Server(listen, sessions=sessions, grace=grace)
