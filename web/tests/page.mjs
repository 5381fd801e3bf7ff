// What a person does on the page, for tests of several files.

export const PATIENCE = { timeout: 60_000 };

export const id = (page, name) => page.getByTestId(name);

/// Shows a view and waits for it.
export async function view(page, name) {
  await id(page, `nav-${name}`).click();
  await id(page, `view-${name}`).waitFor(PATIENCE);
}

/// A table as it is copied: one object per row.
export async function rows(page, name) {
  await id(page, `table-${name}`).waitFor(PATIENCE);
  const read = () => page.evaluate(() => navigator.clipboard.readText());
  await page.evaluate(() => navigator.clipboard.writeText("nothing yet"));
  await id(page, `copy-tsv-${name}`).click();
  while (await read() === "nothing yet") await page.waitForTimeout(20);
  const text = await read();
  const [head, ...lines] = text.trimEnd().split("\n").map((line) => line.split("\t"));
  return lines.map((cells) => Object.fromEntries(head.map((key, at) => [key, cells[at]])));
}
