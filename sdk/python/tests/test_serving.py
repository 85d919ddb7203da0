"""Servers in the process, and sessions on them."""

import os
import subprocess

import numpy as np
import pytest
import tenon
from tenon import ops, train

TENSORFLOW = os.environ.get("TENON_TEST_TENSORFLOW", "")


def test_a_session_on_a_server():
    with tenon.Graph() as graph:
        x = tenon.placeholder(tenon.float32, [None], name="x")
        y = ops.relu(x, name="y")
        w = train.variable("w", initial=np.ones(2, np.float32))
        init = train.initializer()
    with tenon.serve() as server:
        assert server.running and server.address.startswith("grpc://127.0.0.1:")
        with tenon.Session(server.address, graph) as session:
            assert session.run(y, {x: [-1.0, 3.0]}).tolist() == [0, 3]
            session.run(init)
            assert session.callable([x], [y, w.value])([1.0])[1].tolist() == [1, 1]
            assert any("CPU:0" in name for name in session.devices())
            later = y + 1
            assert session.run(later, {x: [1.0]}).tolist() == [2]
            with pytest.raises(tenon.errors.NotFoundError):
                session.run("nothing")
            with pytest.raises(tenon.errors.UnimplementedError):
                session.partial_run([x], [y])
        with tenon.Session(server.address, graph) as session:
            assert session.run(w.value).tolist() == [1, 1], "sessions of a server share variables"
    assert not server.running
    server.stop()
    with pytest.raises(tenon.errors.UnavailableError):
        tenon.Session(server.address, graph)


def test_wrong_addresses():
    with pytest.raises(tenon.errors.InvalidArgumentError, match="ADDRESS:PORT"):
        tenon.serve("nowhere")
    with pytest.raises(tenon.errors.InvalidArgumentError, match="grpc://"):
        tenon.Session("http://x", tenon.Graph())
    with tenon.serve() as server, pytest.raises(tenon.errors.AlreadyExistsError):
        tenon.serve(server.address.removeprefix("grpc://"))


@pytest.mark.skipif(not os.path.exists(TENSORFLOW), reason="needs a Python with TensorFlow in TENON_TEST_TENSORFLOW")
def test_a_client_of_tensorflows():
    program = """
import sys, tensorflow as tf
tf1 = tf.compat.v1
with tf.Graph().as_default(), tf1.Session(sys.argv[1]) as session:
    x = tf1.placeholder(tf.float32, [2])
    print(session.run(tf.nn.relu(x) + 1, {x: [-1.0, 2.0]}).tolist())
"""
    with tenon.serve() as server:
        ran = subprocess.run([TENSORFLOW, "-c", program, server.address], capture_output=True, text=True, timeout=300)
    assert ran.stdout.strip() == "[1.0, 3.0]", ran.stderr[-2000:]
