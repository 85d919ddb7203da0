"""The cases of cliffs.py: families of ops. The first case of a family is the twin of the others."""

from . import arrays, elementwise, images, products, windows
from .case import Case, Inputs

FAMILIES = products.FAMILIES | windows.FAMILIES | images.FAMILIES | elementwise.FAMILIES | arrays.FAMILIES

__all__ = ["FAMILIES", "Case", "Inputs"]
