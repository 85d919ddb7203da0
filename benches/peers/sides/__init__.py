"""The sides: one module each, imported only where it is measured. Of graphs, a `Step` with `run` and `results`."""
