// Checks every page of a demo in a browser: phone and desktop, light and dark. axe-core must find no violation, the console must stay
// empty, no request may go to another host, and no page may scroll sideways.
//
//   node check.mjs BINARY [FOLDER]      with FOLDER, screenshots are stored there
//
// Needs chromium.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const [binary, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCREENS = { phone: { width: 390, height: 844 }, desktop: { width: 1440, height: 900 } };

const demo = spawn(binary, ["demo", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
const [base, link] = await new Promise((found, failed) => {
  let text = "";
  demo.stdout.on("data", (data) => {
    text += data;
    const [url, settings] = [/^Base URL +(\S+)\/v1$/m.exec(text), /^Settings +(\S+)$/m.exec(text)];
    if (url && settings) found([url[1], settings[1]]);
  });
  demo.on("exit", (code) => failed(new Error(`the demo ended with ${code}`)));
});
demo.removeAllListeners("exit");

const faults = [];
const sizes = [];

async function look(page, path, screen, theme) {
  const where = `${path} (${screen}, ${theme})`;
  // What is closed at first is read, too.
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, nodes } of violations) faults.push(`${where}: ${id} at ${nodes.length} places, such as ${nodes[0].html.slice(0, 200)}`);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  if (width > SCREENS[screen].width) faults.push(`${where}: is ${width} pixels wide`);
  if (folder) await page.screenshot({ path: `${folder}/${path.replace(/\W+/g, "_")}_${screen}_${theme}.png` });
}

let browser;
let states = 0;
try {
  browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const start = await browser.newPage();
  await start.goto(base);
  const linked = await start.evaluate(() => [...document.querySelectorAll("nav a")].map((link) => link.pathname));
  await start.close();
  // The page of events is linked by the one of changes.
  const documentation = ["/", ...new Set(linked), "/docs/changes/events"];
  if (documentation.length < 10) throw new Error(`the navigation has only ${linked}`);
  let session;
  for (const screen of Object.keys(SCREENS)) {
    for (const theme of ["light", "dark"]) {
      const page = await browser.newPage();
      await page.setViewport(SCREENS[screen]);
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
      let path = "";
      page.on("console", (line) => ["error", "warn"].includes(line.type()) && faults.push(`${path}: the console says ${line.text()}`));
      page.on("pageerror", (error) => faults.push(`${path}: ${error}`));
      page.on("request", (request) => {
        if (!request.url().startsWith(`${base}/`) && !request.url().startsWith("data:")) faults.push(`${path}: a request to ${request.url()}`);
      });
      for (path of documentation) {
        await page.goto(base + path, { waitUntil: "load" });
        const [{ duration, encodedBodySize }] = JSON.parse(await page.evaluate(() => JSON.stringify(performance.getEntriesByType("navigation"))));
        if (screen === "desktop" && theme === "light") sizes.push(`${path} ${Math.ceil(encodedBodySize / 1024)} KiB in ${Math.round(duration)} ms`);
        await look(page, path, screen, theme);
        states += 1;
      }
      session ? await page.goto(`${base}/settings`) : await page.goto(link);
      await page.waitForSelector("#page:not([hidden])");
      session = true;
      for (const tab of await page.evaluate(() => [...document.querySelectorAll("section[id]")].map(({ id }) => id))) {
        path = `/settings#${tab}`;
        await page.goto(base + path);
        await page.waitForSelector(`#${tab}:not([hidden])`);
        await page.waitForNetworkIdle({ idleTime: 300 });
        await look(page, path, screen, theme);
        states += 1;
      }
      await page.close();
    }
  }
} finally {
  await browser?.close();
  demo.kill();
}
if (faults.length) {
  console.log([...new Set(faults)].join("\n"));
  process.exit(1);
}
console.log(sizes.join("\n"));
console.log(`${states} states of ${states / 4} pages in a browser: no violation of axe-core, no request to another host`);
