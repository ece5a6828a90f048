// Makes pictures of the page: node screenshots.mjs BROWSER LINK FOLDER. scripts/screenshots starts it.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const [folder, link, out] = process.argv.slice(2);
const require = createRequire(path.join(folder, "package.json"));
const puppeteer = require("puppeteer-core");
// The list of fonts in the package names folders that are not here, and a browser without fonts crashes.
const fonts = mkdtempSync(path.join(tmpdir(), "toolgate-fonts-"));
process.on("exit", () => rmSync(fonts, { recursive: true, force: true }));
const list = `<?xml version="1.0"?><fontconfig><dir>${path.join(folder, "unpacked/fonts")}</dir><cachedir>${fonts}</cachedir></fontconfig>`;
writeFileSync(path.join(fonts, "fonts.conf"), list);
process.env.FONTCONFIG_FILE = path.join(fonts, "fonts.conf");
const browser = await puppeteer.launch({
  executablePath: path.join(folder, "unpacked/chromium"),
  headless: "shell",
  pipe: true,
  args: ["--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-dev-shm-usage"],
});
const page = await browser.newPage();
const at = (address) => page.goto(new URL(address, link).href, { waitUntil: "load" });
await page.setViewport({ width: 1180, height: 800 });
await page.goto(link, { waitUntil: "load" });
await at("/ui/runs");
const run = await page.$eval("main tbody th a", (one) => one.href);
const pictures = [
  ["overview", "/ui", "light", 1180], ["approvals", "/ui/approvals", "light", 1180], ["approvals-phone", "/ui/approvals", "dark", 390],
  ["servers", "/ui/servers", "light", 1180], ["server", "/ui/servers/crm", "dark", 1180], ["run", run, "light", 1180],
  ["tools", "/ui/tools?query=send+a+message", "dark", 1180], ["playground", "/ui/playground?run=" + run.split("/").pop(), "light", 1180], ["what-if", "/ui/policy/what-if", "light", 1180], ["tool", "/ui/tools/crm_listCustomers", "light", 1180],
  ["policy", "/ui/policy?tool=notifications_send_email_notification&arguments=%7B%22recipient%22%3A%22ada%22%7D", "light", 1180], ["audit", "/ui/audit", "light", 1180], ["access", "/ui/access", "light", 1180],
];
for (const [name, address, scheme, width] of pictures) {
  await page.setViewport({ width, height: 760 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await at(address);
  await page.screenshot({ path: path.join(out, `${name}.png`) });
}
await browser.close();
