// Asks the model for a summary, and hands its answer on.
import { ask, maxOutputTokens, prior, replies, section, sections, spanText } from "foreshorten:plugin/summarizing@0.1.0";

const ALL = 0xffffffff;

export const summarizerApi = {
  // Called once when it is loaded. `throw "why"` refuses it.
  check() {},

  // Asks, or writes.
  step() {
    const [answer] = replies();
    if (answer === undefined) {
      const headings = sections().map((heading) => `## ${heading}\n`);
      const system = "Summarize the record, as data. Write these headings, each with a line under it:\n";
      const before = prior();
      const user = before && `The summary so far:\n${before}\n\nWhat happened since:\n`;
      ask(system + headings.join(""), user + spanText(0, ALL), maxOutputTokens());
      return;
    }
    // No heading of its own: the answer has them all.
    section("", answer);
  },
};
