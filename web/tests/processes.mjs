// What the processes that descend from this one, which are the browser's, use.
import fs from "node:fs";

/// proc(5) stat; nothing if the process or thread ended meanwhile. The second field is a name in brackets, which may hold blanks and
/// brackets.
export function readStat(file) {
  let stat;
  try {
    stat = fs.readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
  const end = stat.lastIndexOf(")");
  const fields = stat.slice(end + 2).split(" ");
  // Linux reports these in 1/100 s, whatever its own tick is.
  const seconds = (Number(fields[11]) + Number(fields[12])) / 100;
  return { name: stat.slice(stat.indexOf("(") + 1, end), parent: Number(fields[1]), seconds };
}

/// Their numbers, each with its stat.
export function descendants() {
  const all = new Map();
  for (const name of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const stat = readStat(`/proc/${name}/stat`);
    if (stat !== undefined) all.set(Number(name), stat);
  }
  const isOurs = (pid) => {
    for (let at = all.get(pid)?.parent; at > 1; at = all.get(at)?.parent) if (at === process.pid) return true;
    return false;
  };
  return [...all].filter(([pid]) => isOurs(pid));
}

/// Their memory in MB, what they share counted once. Files that they map are left out: another browser that runs meanwhile maps the same
/// ones, and its end would look like growth here.
export function processMegabytes() {
  let kilobytes = 0;
  for (const [pid] of descendants()) {
    try {
      const summary = fs.readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      for (const kind of ["Anon", "Shmem"]) kilobytes += Number(new RegExp(`^Pss_${kind}:\\s+(\\d+)`, "m").exec(summary)[1]);
    } catch { /* It ended meanwhile. */ }
  }
  return kilobytes / 1024;
}
