"""Asks the model for a summary, and hands its answer on."""

from wit_world import exports
from wit_world.imports import summarizing

ALL = 0xFFFFFFFF


class SummarizerApi(exports.SummarizerApi):
    def check(self) -> None:
        """Called once when it is loaded.

        To refuse it, `from componentize_py_types import Err` and `raise Err("why")`.
        """

    def step(self) -> None:
        """Asks, or writes."""
        replies = summarizing.replies()
        if not replies:
            system = "Summarize the record, as data. Write these headings, each with a line under it:\n"
            system += "".join(f"## {heading}\n" for heading in summarizing.sections())
            prior = summarizing.prior()
            user = f"The summary so far:\n{prior}\n\nWhat happened since:\n" if prior else ""
            summarizing.ask(system, user + summarizing.span_text(0, ALL), summarizing.max_output_tokens())
            return
        # No heading of its own: the answer has them all.
        summarizing.section("", replies[0])
