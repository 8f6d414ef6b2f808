from pathlib import Path

import pytest

from domain.table_docs import tables_markdown
from domain.tables import ALL

pytestmark = pytest.mark.fast

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def test_the_page_about_tables_says_what_the_definitions_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == tables_markdown(), "run `lakeboard tables --markdown docs/tables.md`"


def test_every_column_of_every_table_is_on_the_page() -> None:
    sections = tables_markdown().split("\n## ")[1:]

    assert [section.split("\n")[0] for section in sections] == [table.name for table in ALL]
    for section, table in zip(sections, ALL, strict=True):
        assert [line.split("`")[1] for line in section.split("\n") if line.startswith("| `")] == table.column_names
