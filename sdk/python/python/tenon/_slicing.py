"""Indexing of outputs."""

from __future__ import annotations

from typing import Any

from .dtypes import int32
from .graph import Output, constant, home


def sliced(value: Output, items: tuple[Any, ...]) -> Output:
    """A `StridedSlice` of the numbers, slices, ellipsis and new axes that an index has."""
    begin: list[int] = []
    end: list[int] = []
    strides: list[int] = []
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    for at, item in enumerate(items):
        bit = 1 << at
        first, last, step = 0, 0, 1
        if item is Ellipsis:
            masks["ellipsis_mask"] |= bit
        elif item is None:
            masks["new_axis_mask"] |= bit
        elif isinstance(item, slice):
            step = 1 if item.step is None else int(item.step)
            first = 0 if item.start is None else int(item.start)
            last = 0 if item.stop is None else int(item.stop)
            masks["begin_mask"] |= bit if item.start is None else 0
            masks["end_mask"] |= bit if item.stop is None else 0
        elif hasattr(item, "__index__"):
            first = item.__index__()
            last = first + 1
            masks["end_mask"] |= bit if first == -1 else 0
            masks["shrink_axis_mask"] |= bit
        else:
            raise TypeError(
                f"expected numbers, slices, None and ... as an index, found {type(item).__name__}: use tenon.ops.gather_v2 "
                "for others"
            )
        begin.append(first)
        end.append(last)
        strides.append(step)
    graph = home(value.graph)
    parts = [constant(part, int32, graph=graph) for part in (begin, end, strides)]
    return Output(graph, graph._add("StridedSlice", [value, *parts], masks), 0)
