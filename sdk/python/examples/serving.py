"""Serves sessions in this process, and runs a graph on the server from several tasks of asyncio."""

import asyncio

import tenon
from tenon import ops


async def work(session: tenon.Session) -> list[float]:
    """Runs steps side by side."""
    steps = [session.run_async("y", {"x": [float(number)]}) for number in range(-2, 3)]
    return [float(found[0]) for found in await asyncio.gather(*steps)]


def main() -> None:
    """Serves and checks."""
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [None], name="x")
        ops.relu(x, name="y")
    with tenon.serve() as server, tenon.Session(server.address, graph) as session:
        print(f"a session on {len(session.devices())} device")
        found = asyncio.run(work(session))
        print(found)
        assert found == [0.0, 0.0, 0.0, 1.0, 2.0]


if __name__ == "__main__":
    main()
