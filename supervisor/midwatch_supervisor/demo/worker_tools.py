"""The tools of the demo's clerk: a list of open orders, and a place for the report."""

from pydantic_ai import RunContext

_ORDERS = """\
1041: tea 5, mug 2
1042: lamp 1
1043: tea 6, clip 7
1044: mug 3
"""


def list_orders() -> str:
    """List the open orders: number, then each article with its pieces."""
    return _ORDERS


async def write_report(ctx: RunContext[object], text: str) -> str:
    """Write the report for the warehouse, report.txt; an earlier one is replaced.

    Args:
        ctx: The current run.
        text: The whole report.
    """
    await ctx.workspace.write_bytes("report.txt", text.encode())
    return f"Wrote {len(text)} characters to report.txt."
