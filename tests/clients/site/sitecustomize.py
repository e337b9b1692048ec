"""Imported by each Python of a run: lets Gloo's threads finish before Python ends.

A thread of PyTorch 2.13's ProcessGroupGloo releases the last collective after it has reported its end, and takes
Python's lock for that. If Python is ending by then, the process aborts: "terminate called without an active
exception", under any launcher and without one.
"""

import atexit
import time

atexit.register(time.sleep, 0.5)  # without Python's lock
