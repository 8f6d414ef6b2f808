"""Run as a program: count a log live until this process is killed.

Usage: run_consumer.py LOG VIEWS FOLDER
"""

import sys
from pathlib import Path
from threading import Event

from speed_layer.consumer import run
from speed_layer.store.connection import Views
from tests.speed_layer.consuming import Told, consumer_job


def main() -> None:
    log, views, folder = sys.argv[1:]
    run(consumer_job(log, Views(views), Path(folder), tell=Told(), once=False), Event())


if __name__ == "__main__":
    main()
