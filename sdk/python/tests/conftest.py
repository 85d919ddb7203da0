"""Tests run with the plugins of the package, or with those that TENON_PLUGIN_PATH names."""

import os

# What a user has installed is none of the tests' concern.
os.environ["XDG_DATA_HOME"] = "/nonexistent"
