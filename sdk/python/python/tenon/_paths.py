"""Where the package has its files."""

from __future__ import annotations

import os

#: The folder with the package's plugins.
PLUGINS: str = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plugins")
