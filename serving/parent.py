"""Processes that end with their parent, however it ends: the API's workers, and the parts of the stack."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process as soon as its parent is gone, however the parent ends.

    The wish survives `exec`, but not `fork`: each process of a tree says it for itself. Linux only; elsewhere a
    parent that is killed leaves its children.

    Args:
        parent: Process id of the parent, which may have ended before we could ask.

    Raises:
        OSError: the kernel refused.
    """
    if sys.platform != "linux":
        return
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
