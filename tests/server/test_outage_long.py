"""An AI service that is away for a minute, and for ten (SCR-12)."""
from harness import run_tests, test
from unwell import outages


@test("a service that is away for minutes")
def _():
    outages([("a minute", 60, 0), ("ten minutes", 600, 0)])


run_tests()
