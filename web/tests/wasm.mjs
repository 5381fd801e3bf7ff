// Runs test programs that were compiled to wasm, as many at a time as there are processors: `node wasm.mjs ROOT SOURCE PROGRAM SOURCE
// PROGRAM...`. They may read the files below ROOT. (`cargo xtask test --only wasm` builds the programs and runs this.)
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { WASI } from "node:wasi";

const [root, ...rest] = process.argv.slice(2);
const programs = rest.flatMap((name, at) => (at % 2 ? [] : [{ name, program: rest[at + 1] }]));
/** Set where this is the process of one program, and what begins its last line. */
const ALONE = "KINETOSCOPE_WASM_ALONE";
const PASSED = "passed: ";
const env = { PROPTEST_RNG_SEED: process.env.PROPTEST_RNG_SEED ?? "1" };

/** Runs a program; what it printed, and whether all its tests passed. */
async function run(module, name, flags) {
  const path = join(tmpdir(), `kinetoscope-wasm-${process.pid}`);
  const file = openSync(path, "w");
  const options = { version: "preview1", args: [name, ...flags], env, preopens: { [root]: root }, stdout: file, stderr: file };
  const wasi = new WASI({ ...options, returnOnExit: true });
  try {
    const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
    const passed = wasi.start(instance) === 0;
    return { passed, text: readFileSync(path, "utf8") };
  } catch (error) {
    // A panic ends the program: there is no unwinding.
    return { passed: false, text: `${readFileSync(path, "utf8")}\n${error}` };
  } finally {
    closeSync(file);
    rmSync(path);
  }
}

/** Runs the tests of a program: prints what there is to say of them, and ends with how many passed; without any, it failed. */
async function alone({ name, program }) {
  const module = await WebAssembly.compile(readFileSync(program));
  const started = performance.now();
  let { passed, text } = await run(module, name, []);
  const n = Number(/^test result: ok\. (\d+) passed; 0 failed/m.exec(text)?.[1] ?? NaN);
  if (passed && !Number.isNaN(n)) {
    if (n > 0) console.log(`${name}: ${n} tests passed in ${((performance.now() - started) / 1000).toFixed(1)} s`);
    console.log(`${PASSED}${n}`);
    return;
  }
  // What a test prints is held back until it ends, and this one did not end: once more, with all that it prints.
  ({ text } = await run(module, name, ["--nocapture"]));
  console.log(`${name}: FAILED\n${text}`);
}

/** The same in a process of its own: Node 20 ends with a segmentation fault after some sequences of programs that it runs one by one. */
async function apart({ name, program }) {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), root, name, program];
  const child = spawn(process.execPath, args, { env: { ...process.env, [ALONE]: "1" }, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.on("close", (status, signal) => resolve({ status, signal })));
  const [stdout, stderr, { status, signal }] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  const lines = stdout.split("\n");
  const n = lines.find((line) => line.startsWith(PASSED))?.slice(PASSED.length);
  const said = lines.filter((line) => line !== "" && !line.startsWith(PASSED));
  if (said.length > 0) console.log(said.join("\n"));
  if (n === undefined) console.log(`${name}: ended with ${signal ?? status}\n${stderr}`);
  return status === 0 && n !== undefined ? Number(n) : undefined;
}

if (process.env[ALONE]) {
  await alone(programs[0]);
} else {
  let total = 0;
  const failed = [];
  const left = programs.values();
  const runAll = async () => {
    // (All of them take from one iterator.)
    for (const one of left) {
      const n = await apart(one);
      if (n === undefined) failed.push(one.name);
      total += n ?? 0;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runAll));
  console.log(`${total} tests passed as wasm under Node, in ${programs.length - failed.length} programs`);
  if (failed.length > 0 || total === 0) {
    console.log(failed.length > 0 ? `FAILED: ${failed.join(", ")}` : "no test ran");
    process.exitCode = 1;
  }
}
