// A reporter for Node's test runner: notes a line for each test that fails, for the summary of `cargo xtask test`. What the runner prints of a
// failure can be far above that.
import path from "node:path";

import { runs, tally } from "./environment.mjs";

/// The longest message that is kept, in UTF-16 units.
const LONGEST = 400;

/// "links.test.mjs:41: 1 !== 2".
function line({ file, details }) {
  const error = details.error.cause ?? details.error;
  const text = String(error.stack ?? error.message ?? error);
  // (The frames of the stack that are ours, the innermost first.)
  const [, at] = /\/([\w.-]+\.mjs:\d+):\d+\)?$/m.exec(text) ?? [];
  const message = text.replace(/\n +at .*/gs, "").replace(/\s+/g, " ").trim();
  return `${at ?? path.basename(file ?? "")}: ${message.length > LONGEST ? `${message.slice(0, LONGEST)}…` : message}`;
}

export default async function* failures(events) {
  // (The place of a failure tells its file.)
  runs("in Node:");
  for await (const { type, data } of events) {
    // (A test or file whose parts fail has no fault of its own.)
    if (type !== "test:fail" || data.details.error.failureType === "subtestsFailed") continue;
    tally("failed", `${data.name} (${line(data)})`);
  }
}
