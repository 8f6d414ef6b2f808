"""`python -m lakeboard`: the command line, for processes that start it without looking for the script."""

from lakeboard.cli import main

if __name__ == "__main__":
    main()
