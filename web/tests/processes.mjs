// What the processes that descend from this one, which are the browser's, use.
import fs from "node:fs";

// The parent of each process: proc(5) stat. The second field is a name in brackets, which may hold blanks and brackets.
function parents() {
  const found = new Map();
  for (const name of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const text = fs.readFileSync(`/proc/${name}/stat`, "utf8");
      found.set(Number(name), Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]));
    } catch { /* It ended meanwhile. */ }
  }
  return found;
}

/// Their memory in MB, what they share counted once.
export function processMegabytes() {
  const parent = parents();
  const isOurs = (pid) => {
    for (let at = parent.get(pid); at > 1; at = parent.get(at)) if (at === process.pid) return true;
    return false;
  };
  let kilobytes = 0;
  for (const pid of [...parent.keys()].filter(isOurs)) {
    try {
      kilobytes += Number(/^Pss:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))[1]);
    } catch { /* It ended meanwhile. */ }
  }
  return kilobytes / 1024;
}
