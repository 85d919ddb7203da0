"""Generators of the golden data, one module per group of ops. See ../README.md."""
