"""`lakeboard up` for tests that kill much: a part that ended is started again at once.

python -m tests.faults.run_stack --port 8080
"""

import sys
from functools import partial

from lakeboard.cli import main
from lakeboard.commands import up
from lakeboard.stack.launch import launch
from lakeboard.stack.part import Backoff

if __name__ == "__main__":
    # The group imports a command's module when it is asked for, and so takes this one as it is changed here.
    up.launch = partial(launch, backoff=Backoff(first=0.1, longest=0.5))  # type: ignore[attr-defined]  # for this run
    main(["up", *sys.argv[1:]])
