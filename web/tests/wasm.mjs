// Runs test programs that were compiled to wasm, one after the other: `node wasm.mjs ROOT SOURCE PROGRAM SOURCE
// PROGRAM...`. They may read the files below ROOT. (`cargo xtask test --only wasm` builds the programs and runs this.)
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WASI } from "node:wasi";

const [root, ...rest] = process.argv.slice(2);
const programs = rest.flatMap((name, at) => (at % 2 ? [] : [{ name, program: rest[at + 1] }]));
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

let total = 0;
const failed = [];
for (const { name, program } of programs) {
  const module = await WebAssembly.compile(readFileSync(program));
  const started = performance.now();
  let { passed, text } = await run(module, name, []);
  const n = Number(/^test result: ok\. (\d+) passed; 0 failed/m.exec(text)?.[1] ?? NaN);
  if (passed && !Number.isNaN(n)) {
    total += n;
    if (n > 0) console.log(`${name}: ${n} tests passed in ${((performance.now() - started) / 1000).toFixed(1)} s`);
    continue;
  }
  failed.push(name);
  // What a test prints is held back until it ends, and this one did not end: once more, with all that it prints.
  ({ text } = await run(module, name, ["--nocapture"]));
  console.log(`${name}: FAILED\n${text}`);
}
console.log(`${total} tests passed as wasm under Node, in ${programs.length - failed.length} programs`);
if (failed.length > 0 || total === 0) {
  console.log(failed.length > 0 ? `FAILED: ${failed.join(", ")}` : "no test ran");
  process.exitCode = 1;
}
