// The frame around the views: history, leaving, reading again, cards of many files, and narrow windows.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { cli, firefox, pageFolder, scratch, shared } from "./environment.mjs";
import { accessibilityFaults, download, drop, launch, open } from "./harness.mjs";
import { PATIENCE, id, role, sample, settled, view } from "./page.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/// The views of the file that is shown, as the navigation has them.
const views = async (page) => {
  const items = await page.locator(".nav-item").evaluateAll((items) => items.map((item) => item.dataset.testid));
  return items.map((item) => item.replace("nav-", ""));
};
const event = (fields) => ({ ph: "X", pid: 0, tid: 7, ts: 1, dur: 2, ...fields });
const kernel = (fields) => event({ cat: "kernel", name: "gemm_kernel", args: { device: 0, stream: 7 }, ...fields });
const file = (name, events) => ({ name, mimeType: "application/json", buffer: Buffer.from(JSON.stringify({ traceEvents: events })) });
const put = (page, files) => id(page, "file-input").setInputFiles(files);
const hash = (page) => page.evaluate(() => location.hash);

test("Back leads to the former view, and the files stay", async () => {
  const session = await open(browser);
  const { page } = session;
  await put(page, file("one.json", [kernel()]));
  await settled(page);
  const n_before = await page.evaluate(() => history.length);
  await page.keyboard.press("2");
  await id(page, "view-triage").waitFor(PATIENCE);
  assert.equal(await page.evaluate(() => history.length), n_before + 1, "the first view change is a step");
  await page.evaluate(() => history.back());
  await id(page, "view-overview").waitFor(PATIENCE);
  assert.equal(await id(page, "file-card").count(), 1);
  await page.evaluate(() => history.forward());
  await id(page, "view-triage").waitFor(PATIENCE);
  await session.close();
});

test("the page asks before files are thrown away, and only then", async () => {
  const session = await open(browser);
  const { page } = session;
  const asked = () => page.evaluate(() => !window.dispatchEvent(new Event("beforeunload", { cancelable: true })));
  assert.equal(await asked(), false, "nothing is open");
  await put(page, file("one.json", [kernel()]));
  await settled(page);
  assert.equal(await asked(), true);
  await id(page, "remove").click();
  await id(page, "empty").waitFor(PATIENCE);
  assert.equal(await asked(), false, "nothing is open any more");
  await session.close();
});

test("addresses of former views lead to where their tables are now", async () => {
  for (const [former, now] of [["kernels", "triage"], ["problems", "repair"]]) {
    const session = await open(browser);
    const { page } = session;
    await page.evaluate((former) => { location.hash = `#v=1&view=${former}`; }, former);
    await put(page, file("one.json", [kernel()]));
    await id(page, `view-${now}`).waitFor(PATIENCE);
    await page.waitForFunction((now) => location.hash === `#v=1&view=${now}`, now);
    await session.close();
  }
});

test("a digit leads to the heading of the view", async () => {
  const session = await open(browser);
  const { page } = session;
  await put(page, file("one.json", [kernel()]));
  await settled(page);
  await page.keyboard.press("7");
  await id(page, "view-repair").waitFor(PATIENCE);
  await page.waitForFunction(() => document.activeElement?.tagName === "H1");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "File health");
  await session.close();
});

test("a clipped file that is read again is not clipped, whatever was written before", async () => {
  // Two kernels on one stream: the first claims 8 s and the next begins 10 us later.
  const long = kernel({ ts: 100, dur: 8_000_000, name: "long" });
  const events = [long, ...Array.from({ length: 40 }, (_, at) => kernel({ ts: 110 + 10 * at, dur: 5, name: `k${at}` }))];
  const session = await open(browser);
  const { page } = session;
  await put(page, [file("clip.json", events), file("other.json", [kernel()])]);
  await settled(page);
  await id(page, "file-card").first().getByRole("button").first().click();
  await view(page, "repair");
  const duration = async () => {
    const saved = await download(page, () => id(page, "download-json").click());
    const { traceEvents } = JSON.parse(fs.readFileSync(saved.path, "utf8"));
    return traceEvents.find(({ name }) => name === "long").dur;
  };
  const clip = id(page, "clip-impossible");
  // The box is drawn from the plan that comes back, so its state may change after the click.
  await clip.click();
  await settled(page);
  assert.ok(await clip.isChecked(), "ticked");
  assert.ok(await duration() < 8_000_000, "clipped");

  // A worker that does not answer keeps the file busy until a person stops it.
  const mute = (on) => page.evaluate((on) => {
    globalThis.realPost ??= Worker.prototype.postMessage;
    Worker.prototype.postMessage = on ? () => {} : globalThis.realPost;
  }, on);
  await mute(true);
  await role(page, "other.json").selectOption({ label: "Mapping trace for clip.json" });
  await id(page, "cancel").first().click();
  await mute(false);
  await role(page, "other.json").selectOption({ index: 0 });
  await id(page, "retry").first().click();
  await settled(page);
  await view(page, "repair");
  assert.equal(await clip.isChecked(), false);
  assert.equal(await duration(), 8_000_000, "as the box says");
  await session.close();
});

test("a worker of another build is noticed", async () => {
  const folder = scratch();
  fs.cpSync(pageFolder(), folder, { recursive: true });
  const name = fs.readdirSync(folder).find((name) => /^worker-.*_bg\.wasm$/.test(name));
  const whole = await open(browser, { folder });
  const build = /build ([0-9a-f]{16})/.exec(await id(whole.page, "version").textContent())[1];
  await whole.close();
  const bytes = fs.readFileSync(path.join(folder, name));
  const at = bytes.indexOf(build);
  assert.ok(at > 0, "the worker carries its build");
  for (let from = at; from >= 0; from = bytes.indexOf(build, from + 1)) bytes.write("0123456789abcdef", from);
  fs.writeFileSync(path.join(folder, name), bytes);
  const session = await open(browser, { folder });
  await put(session.page, file("one.json", [kernel()]));
  const failure = id(session.page, "failure").first();
  await failure.waitFor(PATIENCE);
  const text = await failure.innerText();
  assert.match(text, /updated while it was open/);
  assert.ok(text.includes(build) && text.includes("0123456789abcdef"), text);
  await session.close();
});

test("names that differ at the end or in the middle can be told apart, and nothing runs under a button", async () => {
  const long = "2026-01-07_host-a_tp8_llama_benchmark_of_the_long_context_run";
  const names = [`${long}_rank0_decode.pt.trace.json`, `${long}_rank1_decode.pt.trace.json`];
  for (const width of [400, 1280]) {
    const session = await open(browser, { viewport: { width, height: 800 } });
    const { page } = session;
    await put(page, names.map((name) => file(name, [kernel()])));
    await settled(page);
    for (const [at, name] of names.entries()) {
      const card = id(page, "file-card").nth(at);
      assert.equal(await card.locator("bdi").textContent(), name);
      const seen = await card.evaluate((card) => {
        const tail = card.querySelector(".name-tail");
        const close = card.querySelector("[data-testid=remove]").getBoundingClientRect();
        return {
          tail: tail.textContent, cut: tail.scrollWidth - tail.clientWidth,
          under: card.querySelector(".file-card-main").getBoundingClientRect().right - close.left,
        };
      });
      assert.ok(seen.tail.startsWith(`rank${at}`), seen.tail);
      assert.ok(seen.cut < 60, "the difference is in sight");
      assert.ok(seen.under <= 0.5, `${seen.under} px under the button`);
    }
    await session.close();
  }
});

test("many files: filtered by name and state, a short list of roles, closed at once", async () => {
  const session = await open(browser);
  const { page } = session;
  const good = Array.from({ length: 20 }, (_, at) => file(`rank${at}.json`, [kernel()]));
  const bad = { name: "page.json", mimeType: "application/json", buffer: Buffer.from("<!DOCTYPE html><html></html>") };
  await put(page, [...good, bad, good[3]]);
  await settled(page);
  assert.equal(await id(page, "file-card").count(), 22);
  assert.match(await id(page, "file-card").last().textContent(), /opened twice/);
  assert.equal(await id(page, "file-repeated").count(), 1);
  const options = await id(page, "role").first().locator("option").count();
  assert.ok(options <= 1 + 3 * 12, `${options} options on a card`);
  assert.ok(await id(page, "role").first().locator("optgroup").count() > 0);

  assert.deepEqual(await accessibilityFaults(page), []);

  await id(page, "files-failed").click();
  assert.deepEqual(await id(page, "file-card").locator("bdi").allTextContents(), ["page.json"]);
  await id(page, "files-all").click();
  await id(page, "filter-files").fill("RANK1");
  await page.waitForFunction(() => document.querySelectorAll("[data-testid=file-card]").length === 11);
  await id(page, "remove-all").click();
  await id(page, "empty").waitFor(PATIENCE);
  await session.close();
});

test("the card says how the file is, in one badge", async () => {
  const session = await open(browser);
  const { page } = session;
  const crossing = [event({ tid: 1, ts: 0, dur: 10, name: "a", cat: "cpu_op" }), event({ tid: 1, ts: 5, dur: 10, name: "b", cat: "cpu_op" })];
  const cut = { name: "cut.json", mimeType: "application/json", buffer: Buffer.from(`{"traceEvents": [${JSON.stringify(kernel())}, {"ph":"X","na`) };
  await put(page, [file("good.json", [kernel()]), file("crossing.json", crossing), cut]);
  await settled(page);
  assert.deepEqual(await id(page, "file-health").allTextContents(), ["No problems", "1 crossing slice", "Truncated"]);
  assert.equal(await id(page, "nav-problems").count(), 0);
  await id(page, "file-card").nth(2).getByRole("button").first().click();
  await view(page, "repair");
  assert.equal(await id(page, "problem").first().getAttribute("data-kind"), "truncated");
  await view(page, "overview");
  assert.equal(await id(page, "figure-lost").count(), 0, "no loss among the figures of performance");
  await session.close();
});

test("a trace without GPU slices: one sentence, and how to record them", async () => {
  const session = await open(browser);
  const { page } = session;
  await put(page, file("cpu.json", [event({ cat: "cpu_op", name: "aten::add", tid: 1 }), event({ cat: "cpu_op", name: "aten::mul", tid: 1, ts: 9 })]));
  await settled(page);
  // What was recorded, and, with the diagnosis, what the CPU did.
  await page.waitForFunction(() => document.querySelector("[data-testid=finding-line]").textContent.startsWith("The file has no GPU work. aten::add takes 50.0%"), undefined, PATIENCE);
  await id(page, "nav-diagnosis").click();
  await id(page, "baseline").waitFor(PATIENCE);
  const told = await id(page, "view-diagnosis").innerText();
  assert.match(told, /No action: the file does not show where wall time on a GPU goes\./);
  assert.doesNotMatch(told, /What costs time/, "no empty card");
  await id(page, "nav-overview").click();
  for (const name of ["triage", "breakdown", "overlap", "fuse", "compare"]) assert.equal(await id(page, `nav-${name}`).count(), 0, name);
  await id(page, "how-to-record").click();
  await id(page, "dialog").waitFor();
  assert.match(await id(page, "dialog").textContent(), /with_stack=True/);
  await id(page, "dialog-close").click();
  // Once the dialog is gone, keys are the page's, though the page may not have heard of it yet.
  await id(page, "dialog").waitFor({ state: "hidden" });
  await page.keyboard.press("2");
  await id(page, "view-triage").getByTestId("no-gpu").waitFor(PATIENCE);
  assert.match(await id(page, "finding-line").textContent(), /^This trace contains no GPU slices; it holds 2 PyTorch ops/, "no empty tables");
  await session.close();
});

test("how to record is told where lines and shapes are missing, with the switches that record them", async () => {
  const session = await open(browser);
  const { page } = session;
  const help = await id(page, "record-help").textContent();
  for (const text of ["with_stack=True", "record_shapes=True", '"with_stack": true, "record_shapes": true', "--profiler-config", "torch_profiler_record_shapes", "VLLM_TORCH_PROFILER_DIR"]) {
    assert.ok(help.includes(text), text);
  }
  const launch = [
    event({ cat: "cpu_op", name: "aten::mm", tid: 1, ts: 0, dur: 50, args: { "External id": 5 } }),
    event({ cat: "cuda_runtime", name: "cudaLaunchKernel", tid: 1, ts: 10, dur: 5, args: { correlation: 9, "External id": 5 } }),
    kernel({ ts: 30, dur: 20, args: { device: 0, stream: 7, correlation: 9, "External id": 5 } }),
  ];
  await put(page, file("bare.json", launch));
  await settled(page);
  for (const name of ["overview", "triage", "fuse"]) {
    await view(page, name);
    assert.match(await id(page, "lacks").textContent(), /with_stack and record_shapes were off/, name);
  }
  await id(page, "how-to-record").click();
  assert.match(await id(page, "dialog").textContent(), /torch_profiler_with_stack/);
  assert.deepEqual(await accessibilityFaults(page), []);
  await session.close();
});

test("a folder is picked by a button that the keyboard reaches, and what is skipped is counted", async () => {
  const session = await open(browser);
  const { page } = session;
  const folder = scratch();
  const trace = JSON.stringify({ traceEvents: [kernel()] });
  for (const [name, text] of [["a.json", trace], ["b.json", trace], ["notes.png", "x"], ["run.log", "x"]]) fs.writeFileSync(path.join(folder, name), text);
  await id(page, "choose-folder").focus();
  // Chromium does not let a test answer its dialog for folders, so the test stops at the click that opens it.
  const input = id(page, "folder-input");
  await input.evaluate((input) => {
    input.addEventListener("click", (event) => { event.preventDefault(); globalThis.asked = true; }, { once: true });
  });
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => globalThis.asked), true, "the dialog is asked for");
  // WebDriver BiDi gives an input files, but no folder.
  if (firefox() !== undefined) return session.close();
  await input.setInputFiles(folder);
  await settled(page);
  assert.equal(await id(page, "file-card").count(), 2);
  assert.equal(await id(page, "announcement").textContent(), "Opened 2 files of the folder; 2 other files skipped");
  await session.close();
});

test("the example opens in Overview, and leads with what to do", async () => {
  const session = await open(browser);
  const { page } = session;
  await put(page, file("one.json", [kernel()]));
  await settled(page);
  await view(page, "downloads");
  await id(page, "remove").click();
  await id(page, "example").click();
  await id(page, "view-overview").waitFor(PATIENCE);
  await settled(page);
  const [advice, figures] = [id(page, "takeaways"), id(page, "figure-span")];
  await advice.waitFor(PATIENCE);
  const top = async (of) => (await of.boundingBox()).y;
  assert.ok(await top(advice) < await top(figures), "advice comes first");
  assert.equal(await hash(page), "#v=1&view=overview".slice(0, (await hash(page)).length));
  for (const finding of await id(page, "finding").all()) assert.equal(await finding.getByTestId("finding-open").count(), 1);
  await session.close();
});

/// The options of our own command line, of every command.
function ownOptions() {
  const help = (...command) => execFileSync(cli(), [...command, "--help"], { encoding: "utf8" });
  const commands = [...help().matchAll(/^ {2}([a-z][a-z-]*) {2,}/gm)].map(([, name]) => name).filter((name) => name !== "help");
  const options = commands.flatMap((name) => help(name).match(/(?<=\s)--[a-z][a-z-]*/g) ?? []);
  assert.ok(commands.length > 5 && options.includes("--json"), `${commands}: ${options}`);
  return new Set(options);
}

test("no option of the command line stands on the page", async () => {
  // (Those of servers do, in advice.)
  const own = ownOptions();
  const session = await open(browser);
  const { page } = session;
  await id(page, "example").click();
  await settled(page);
  const all = await views(page);
  assert.ok(all.length > 10, `${all}`);
  for (const name of all) {
    await view(page, name);
    const text = await id(page, `view-${name}`).innerText();
    const found = text.match(/(?<=^|\s)--[a-z][a-z-]*/g) ?? [];
    assert.deepEqual(found.filter((option) => own.has(option)), [], name);
  }
  await session.close();
});

describe("400 px", () => {
  const long = `${"a_very_long_name_of_a_run_without_any_blank_".repeat(4)}rank0.pt.trace.json`;
  const check = async (page) => {
    for (const name of await views(page)) {
      await view(page, name);
      const wide = await page.evaluate((name) => {
        const parts = [document.documentElement, document.querySelector("main"), document.querySelector(`[data-testid=view-${name}]`)];
        return parts.map((part) => part.scrollWidth - part.clientWidth);
      }, name);
      assert.ok(wide.every((px) => px <= 0), `${name} is cut or scrolls sideways: ${wide}`);
    }
  };
  test("no view is cut, whatever the name of the file", async () => {
    const session = await open(browser, { viewport: { width: 400, height: 800 } });
    const { page } = session;
    const kernels = Array.from({ length: 30 }, (_, at) => kernel({ ts: 100 + 10 * at, dur: 5, name: `void a_kernel_with_a_very_long_name_${"x".repeat(60)}${at}<float>` }));
    const crossing = [event({ tid: 1, ts: 0, dur: 10, name: "a" }), event({ tid: 1, ts: 5, dur: 10, name: "b" })];
    await put(page, [file(long, [...kernels, ...crossing]), file(`b${long}`, kernels)]);
    await settled(page);
    await role(page, `b${long}`).selectOption({ index: 2 });
    await settled(page);
    await check(page);
    await session.close();
  });

  test("the file and the view that are shown are seen in their strips", async () => {
    const session = await open(browser, { viewport: { width: 400, height: 800 } });
    const { page } = session;
    const names = ["first", "second", "third"].map((name) => `${name}_of_three_ranks.json`);
    await put(page, names.map((name) => file(name, [kernel({ ts: 1, dur: 2, name: "k" })])));
    await settled(page);
    const isSeen = (item, strip) => page.waitForFunction(([item, strip]) => {
      const [own, seen] = [item, strip].map((of) => document.querySelector(of).getBoundingClientRect());
      return own.left >= seen.left && own.left < seen.right - 40;
    }, [item, strip], PATIENCE);
    for (const name of names) {
      await page.locator(".file-card-main", { hasText: name.slice(0, 5) }).dispatchEvent("click");
      await isSeen(".file-card.selected", ".file-cards");
    }
    for (const name of ["downloads", "overview", "repair"]) {
      await id(page, `nav-${name}`).dispatchEvent("click");
      await id(page, `view-${name}`).waitFor(PATIENCE);
      await isSeen(".nav [aria-current]", ".nav");
    }
    await session.close();
  });

  test("nor is one of a real trace", { skip: shared() === undefined }, async () => {
    const session = await open(browser, { viewport: { width: 400, height: 800 } });
    const { page } = session;
    await drop(page, "body", sample("mi300_resnet_training.json.gz"));
    await settled(page);
    await check(page);
    await session.close();
  });
});
