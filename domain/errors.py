"""The root of the error tree; each way to fail is one class beside the code that finds it."""


class LakeboardError(Exception):
    """Root of the tree; catch it to catch all of ours, never raise it itself.

    Its text is one sentence that says what is wrong and what to do next: the command line prints it as it is.
    """


class BadRequestError(LakeboardError):
    """What the caller asked for cannot be asked: a wrong option, an unaligned time, an unknown name."""
