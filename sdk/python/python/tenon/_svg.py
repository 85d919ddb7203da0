"""Drawings of graphs for notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Graph, Node

#: The most nodes that are drawn.
MOST = 200
_WIDTH, _HEIGHT, _GAP = 150, 34, 26


def _layers(nodes: list[Node], sources: list[list[int]]) -> list[int]:
    """The layer of each node: below all of its sources. A source that comes later, as in loops, does not count."""
    layers: list[int] = []
    for at in range(len(nodes)):
        before = [layers[source] for source in sources[at] if source < at]
        layers.append(max(before, default=-1) + 1)
    return layers


def html_of(graph: Graph) -> str:
    """A graph as a notebook shows it: a drawing, or the numbers of its ops where it is large."""
    nodes = graph.nodes()
    if len(nodes) <= MOST:
        return f"<figure><figcaption>{len(nodes)} nodes</figcaption>{drawing(graph)}</figure>"
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node.op] = counts.get(node.op, 0) + 1
    rows = "".join(f"<tr><td>{html.escape(op)}</td><td>{count}</td></tr>" for op, count in sorted(counts.items()))
    return f"<table><caption>{len(nodes)} nodes</caption><tr><th>op</th><th>nodes</th></tr>{rows}</table>"


def drawing(graph: Graph) -> str:
    """A drawing of a graph of at most `MOST` nodes: sources above the nodes that take their outputs."""
    nodes = graph.nodes()
    found = [graph._native.node(node.id) for node in nodes]
    sources = [[pair[0] for pair in parts[3]] for parts in found]
    layers = _layers(nodes, sources)
    columns: list[int] = [0] * (max(layers, default=0) + 1)
    places: list[tuple[int, int]] = []
    for layer in layers:
        places.append((columns[layer] * (_WIDTH + _GAP), layer * (_HEIGHT + _GAP)))
        columns[layer] += 1
    width = max(columns, default=1) * (_WIDTH + _GAP)
    height = len(columns) * (_HEIGHT + _GAP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">']
    for at, (x, y) in enumerate(places):
        for source in sources[at]:
            from_x, from_y = places[source]
            line = f'x1="{from_x + _WIDTH // 2}" y1="{from_y + _HEIGHT}" x2="{x + _WIDTH // 2}" y2="{y}"'
            parts.append(f'<line {line} stroke="#888"/>')
    for (x, y), (name, op, device, *_) in zip(places, found):
        title = html.escape(f"{name} ({op}) {device}".strip())
        short = html.escape(name if len(name) <= 20 else name[:9] + "…" + name[-10:])
        parts.append(f"<g><title>{title}</title>")
        parts.append(
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="#eef3fa" stroke="#56789a"/>'
        )
        parts.append(f'<text x="{x + 6}" y="{y + 14}" font-size="11">{short}</text>')
        parts.append(f'<text x="{x + 6}" y="{y + 28}" font-size="10" fill="#555">{html.escape(op)}</text></g>')
    parts.append("</svg>")
    return "".join(parts)
