"""Check that each relative link in the project's Markdown pages leads somewhere; print those that do not."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
OUTSIDE = ("http://", "https://", "mailto:")
SKIPPED = {".venv", ".jars", ".lakeboard", ".git", "node_modules"}


def pages(root: Path) -> Iterator[Path]:
    """Yield the project's own Markdown pages."""
    return (page for page in sorted(root.rglob("*.md")) if not SKIPPED & set(page.relative_to(root).parts))


def broken_links(page: Path) -> Iterator[str]:
    """Yield the targets of a page that lead nowhere."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith(OUTSIDE) and not (page.parent / target).exists():
            yield target


def main(root: Path) -> int:
    """Print each broken link and return the exit code."""
    broken = [f"{page.relative_to(root)}: {target}" for page in pages(root) for target in broken_links(page)]
    print("\n".join(broken) if broken else "docs: every link leads somewhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1]))
