"""A run of fast tests must not pay for Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
COLLECT = """
import sys, pytest
code = pytest.main(["-m", "fast and not law", "--collect-only", "-q"])
print(int(code), sorted({"pyspark", "py4j"} & set(sys.modules)))
"""


def test_collecting_the_fast_tests_loads_no_spark_and_leaves_none_out() -> None:
    result = subprocess.run([sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True, timeout=120,
                            check=True)  # fmt: skip

    files = {line.split("::")[0] for line in result.stdout.splitlines() if "::" in line}
    marked = {str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py")
              if "pytest.mark.fast" in file.read_text(encoding="utf-8")}  # fmt: skip
    assert result.stdout.splitlines()[-1] == "0 []"
    assert files == marked - {str(Path(__file__).relative_to(ROOT))}
