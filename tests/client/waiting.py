"""Steps that wait: run beside the case, and looked at later."""

import threading
import time

# Long enough for a step that does not wait to be done on a busy machine.
PATIENCE_S = 0.6


def code_of(run):
    """The result of a step, or the name of its error."""
    from tensorflow.python.framework import errors_impl
    try:
        return run()
    except errors_impl.OpError as error:
        return type(error).__name__


class Later:
    """A step on a thread of its own."""

    def __init__(self, session, fetches, feed_dict=None, options=None):
        self.result = None

        def work():
            self.result = code_of(lambda: session.run(fetches, feed_dict, options=options))

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def waits(self):
        """Whether it still waits after some time."""
        self.thread.join(PATIENCE_S)
        return self.thread.is_alive()

    def end(self):
        """Its result, or the name of its error."""
        self.thread.join(30)
        assert not self.thread.is_alive(), "the step still waits"
        return self.result


def started(later):
    """Gives a step time to begin to wait."""
    time.sleep(0.3)
    return later
