// Drives a browser for the tests of the page: node browser.mjs FOLDER LINK
//
// Each line on stdin is one thing to do, and each line on stdout says how it went.
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import readline from "node:readline";

const [folder, link] = process.argv.slice(2);
const require = createRequire(path.join(folder, "package.json"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const origin = new URL(link).origin;
// The list of fonts in the package names folders that are not here, and a browser without fonts crashes.
const fonts = mkdtempSync(path.join(tmpdir(), "toolgate-fonts-"));
process.on("exit", () => rmSync(fonts, { recursive: true, force: true }));
const list = `<?xml version="1.0"?><fontconfig><dir>${path.join(folder, "unpacked/fonts")}</dir><cachedir>${fonts}</cachedir></fontconfig>`;
writeFileSync(path.join(fonts, "fonts.conf"), list);
process.env.FONTCONFIG_FILE = path.join(fonts, "fonts.conf");

const browser = await puppeteer.launch({
  executablePath: path.join(folder, "unpacked/chromium"),
  headless: "shell",
  // Without the pipe the browser would outlive a test that ends this process.
  pipe: true,
  args: ["--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-dev-shm-usage"],
  timeout: 120_000,
  protocolTimeout: 120_000,
});
const complaints = [];

async function newWindow() {
  const page = await browser.newPage();
  page.setDefaultTimeout(110_000);
  page.on("console", (message) => {
    // Who leaves a page ends its stream, perhaps before it has begun.
    const isLeft = message.text().startsWith("htmx: htmx:error: Failed to fetch");
    if (["error", "warn"].includes(message.type()) && !isLeft) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) complaints.push(`asked ${request.url()}`);
  });
  return page;
}

// The window in which things are done.
let page = await newWindow();
const windows = [page];

// A stream keeps the network busy, so what counts is that the page is there.
async function go(address) {
  if (address === "/ui/runs/first") {
    await go("/ui/runs");
    address = await page.$eval("main tbody th a", (link) => link.href);
  }
  if (address === "/ui/playground/first") {
    await go("/ui/runs");
    const run = await page.$eval("main tbody th a", (link) => link.href.split("/").pop());
    address = `/ui/playground?run=${run}`;
  }
  return page.goto(new URL(address, origin).href, { waitUntil: "load" });
}

async function check(address) {
  const found = [];
  for (const width of [360, 1280]) {
    for (const scheme of ["light", "dark"]) {
      await page.setViewport({ width, height: 900 });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await go(address);
      // Apart from the page: its own policy lets no other script in.
      const world = await page.mainFrame().isolatedRealm();
      await world.evaluate(axe + ";0");
      const { violations } = await world.evaluate(() => axe.run());
      for (const { id, nodes } of violations) {
        found.push(`${width} ${scheme} ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`);
      }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) found.push(`${width} ${scheme}: ${wide} pixels too wide`);
    }
  }
  return found;
}

// The policy of the page forbids how the library itself waits: by a function that it makes of a text.
async function appears(selector) {
  for (;;) {
    const found = await page.$(selector);
    if (found) return found;
    await new Promise((later) => setTimeout(later, 50));
  }
}

const actions = {
  go: async (address) => (await go(address)).status(),
  check,
  // Opens so many windows at an address. Says whether each is hidden, as htmx ends the streams of hidden ones.
  windows: async ([count, address]) => {
    while (windows.length < count) windows.push(await newWindow());
    for (page of windows) await go(address);
    return Promise.all(windows.map((one) => one.evaluate(() => document.hidden)));
  },
  window: (index) => {
    page = windows[index];
  },
  see: async (selector) => {
    const seen = await appears(selector);
    return seen.evaluate((element) => element.innerText);
  },
  press: async (selector) => {
    const button = await appears(selector);
    await Promise.all([page.waitForNavigation({ waitUntil: "load" }), button.click()]);
  },
  type: async ([selector, words]) => {
    const field = await appears(selector);
    await field.focus();
    await page.keyboard.down("Control");
    await page.keyboard.press("End");
    await page.keyboard.up("Control");
    await page.keyboard.type(words);
  },
  // The regions that scroll sideways at this width.
  sideways: async ([width, address]) => {
    await page.setViewport({ width, height: 900 });
    await go(address);
    return page.$$eval(".scroll", (all) =>
      all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => `${one.ariaLabel}: ${one.scrollWidth} of ${one.clientWidth}`),
    );
  },
  keys: async (keys) => {
    for (const key of keys) await page.keyboard.press(key);
  },
  value: (selector) => page.$eval(selector, (field) => field.value),
  "allow once": () => actions.press("article.question button[value=once]"),
  owned: () => page.evaluate(() => "owned" in window || document.querySelector("main img, main script") !== null),
  complaints: () => complaints,
  attack: async (address) => {
    await page.goto(address, { waitUntil: "load" });
    const fetched = await page.evaluate(async (url) => {
      const body = new URLSearchParams({ answer: "once" });
      return fetch(url, { method: "POST", body, credentials: "include" }).then(() => "read", () => "refused");
    }, await page.$eval("form", (form) => form.action));
    const framed = page.frames().some((frame) => frame !== page.mainFrame() && frame.url().startsWith(origin));
    const [response] = await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.click("button")]);
    return { fetch: fetched, form: response.status(), framed };
  },
};

const say = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");
await page.goto(link, { waitUntil: "load" });
say(page.url() === `${origin}/ui` ? { said: "opened" } : { error: page.url() });
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { what, with: argument } = JSON.parse(line);
  try {
    say({ said: (await actions[what](argument)) ?? null });
  } catch (error) {
    say({ error: `${error.message} at ${page.url()}` });
  }
}
await browser.close();
