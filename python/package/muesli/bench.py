"""Results of ``muesli bench --json``, as rows and as data frames."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]
"""A result. What is nested in it has names with points between: ``latency_us.p99``."""


def run(*arguments: str, program: str | os.PathLike[str] = "muesli") -> list[Row]:
    """Runs ``muesli bench`` with these arguments, and gives a row for each result.

    Raises `subprocess.CalledProcessError` where it fails, or a check of a workload does not hold.
    """
    command = [os.fspath(program), "bench", *arguments, "--json", "-"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return rows(ran.stdout)


def read(path: str | os.PathLike[str]) -> list[Row]:
    """The rows of a file that ``muesli bench --json FILE`` has written."""
    return rows(Path(path).read_text())


def rows(text: str) -> list[Row]:
    """The rows of results in JSON: one result, or a list of them."""
    results = json.loads(text)
    if isinstance(results, dict):
        results = [results]
    if not isinstance(results, list) or not all(isinstance(it, dict) for it in results):
        raise ValueError("this is no result of `muesli bench --json`")
    return [_flat(result) for result in results]


def frame(results: list[Row]) -> pandas.DataFrame:
    """The same as a data frame, which has a column for each name; pandas is to be installed."""
    import pandas

    return pandas.DataFrame(results)


def _flat(result: Row) -> Row:
    row: Row = {}
    for name, value in result.items():
        if isinstance(value, dict):
            row.update({f"{name}.{inner}": it for inner, it in _flat(value).items()})
        else:
            row[name] = value
    return row
