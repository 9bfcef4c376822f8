"""The guide's code is run, one block after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import muesli
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "using" / "python.md"


def test_the_guide_is_run(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    assert len(blocks) == 7
    names: dict[str, Any] = {}
    for block in blocks:
        # Errors name the line of the page.
        lines = "\n" * text.count("\n", 0, block.start(1))
        code = block[1].replace("127.0.0.1:7400", server)
        exec(compile(lines + code, str(GUIDE), "exec"), names)


def test_the_guide_has_all_exceptions_and_codecs() -> None:
    text = GUIDE.read_text()
    errors = [name for name in muesli.__all__ if name.endswith("Error")]
    assert [name for name in errors if f"`{name}`" not in text] == []
    for name in ("BYTES", "STR", "BOOL", "JSON", "MSGPACK", "tuple_of"):
        assert f"`{name}" in text
