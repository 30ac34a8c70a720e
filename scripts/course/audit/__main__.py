"""Looks at every page of the built site, shows a table, and fails where a budget is not kept."""

import sys
from pathlib import Path

from course.audit.rows import audit
from course.scenes import ROOT

HEAD = ["page", "kB", "kB next", "requests", "shift", "axe", "HTML", "links", "cut, sheets"]


def main(argv: list[str]) -> int:
    """Audits a built site; gives the exit code."""
    site = Path(argv[0]) if argv else ROOT / "site"
    rows = audit(site)
    _print_table([HEAD, *(row.cells() for row in rows)])
    problems = [f"{row.page}: {problem}" for row in rows for problem in row.problems()]
    for problem in problems:
        print(problem)
    print(f"{len(rows)} pages, {len(problems)} problems.")
    return 1 if problems else 0


def _print_table(rows: list[list[str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
        print("  ".join(cells))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
