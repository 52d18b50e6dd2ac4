// Checks every page of a demo server in a browser, on the screens of a phone and of a desktop, with light and with dark colours. Checks the
// settings page in each language, with names of 300 characters, and with its dialogs open. The accessibility checker axe-core must find no
// violation, the console must have no warning or error, no request may go to another host, and no page may scroll sideways. On each tab of
// the settings page the tab key must reach every link and control, and the focus must be visible there.
//
//   node check.mjs BINARY [FOLDER]      with FOLDER, screenshots are stored there
//
// Needs chromium.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer from "puppeteer-core";

const [binary, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCREENS = { phone: { width: 390, height: 844 }, desktop: { width: 1440, height: 900 } };

const home = mkdtempSync(join(tmpdir(), "pages-"));
const database = join(home, "demo.db");
const demo = spawn(binary, ["demo", "--keep", database, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
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

// Names of 300 characters: one without spaces, and one in Thai.
const LONG = ["x".repeat(300), "ร้านขายเสื้อผ้าและเครื่องประดับ".repeat(10).slice(0, 300)];
const records = LONG.flatMap((name, number) => [
  { kind: "user", record: { id: `seat-long-${number}`, userId: `0a000000-0000-4000-8000-00000000000${number}`, name, email: `long${number}@example.com` } },
  { kind: "account", record: { id: `acc-long-${number}`, channel: "line", name, status: "healthy" } },
]);
const input = records.map((record) => JSON.stringify(record)).join("\n");
const imported = spawnSync(binary, ["import", "--store", "demo", "--database-url", `sqlite://${database}`, "-"], { input, encoding: "utf8" });
if (imported.status) throw new Error(imported.stderr);

// A webhook whose host does not exist, so that the attempt to deliver to it fails.
const HOOK = { url: `https://hooks.invalid/${"y".repeat(250)}` };

// A text that the demo's channels refuse, so that its message fails.
const REFUSED = `simulate:refuse ${LONG[0]} ${LONG[1]}`;

const LANGUAGES = ["en", "th"];
// Buttons that act immediately; all others open a dialog.
const AT_ONCE = ["sign-out", "reload", "older", "test-webhook", "enable-webhook", "activate-key", "replay-one", "retry-message", "send-link", "close", "copy"];

// The time limit of each wait, in milliseconds. It is long because the machine may be busy with other checks.
const PATIENCE = 120_000;

const faults = [];
const sizes = [];

// Opens each dialog for which a tab shows a button, checks the dialog, and closes it again.
async function lookAtDialogs(page, path, tab, screen, theme) {
  const acts = await page.evaluate((tab) => [...document.querySelectorAll(`#${tab} [data-act]`)].filter((button) => button.checkVisibility()).map(({ dataset }) => dataset.act), tab);
  let looked = 0;
  for (const act of new Set(acts)) {
    if (AT_ONCE.includes(act)) continue;
    await page.evaluate((tab, act) => [...document.querySelectorAll(`#${tab} [data-act=${act}]`)].find((button) => button.checkVisibility()).click(), tab, act);
    await page.waitForSelector("dialog[open]");
    await look(page, `${path}/${act}`, screen, theme);
    await page.evaluate(() => document.querySelector("dialog[open]").close());
    looked += 1;
  }
  return looked;
}

// Checks that the tab key reaches every usable element of a page, and that the focus is visible there.
async function walkByKeyboard(page, path) {
  const count = await page.evaluate(() => {
    const usable = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
    globalThis.unreached = new Set(usable.filter((element) => element.checkVisibility() && !element.disabled && !element.closest("dialog")));
    globalThis.unseen = [];
    document.activeElement.blur();
    return globalThis.unreached.size;
  });
  // Lists refresh themselves during the check, which may replace the focused element. So the key is pressed about twice as often as there
  // are elements.
  for (let press = 0; press < 2 * count + 5; press += 1) {
    await page.keyboard.press("Tab");
    const left = await page.evaluate(() => {
      const focused = document.activeElement;
      const { outlineStyle, boxShadow } = getComputedStyle(focused);
      if (focused !== document.body && outlineStyle === "none" && boxShadow === "none") globalThis.unseen.push(focused.outerHTML);
      globalThis.unreached.delete(focused);
      return globalThis.unreached.size;
    });
    if (!left) break;
  }
  const [unreached, unseen] = await page.evaluate(() => [[...globalThis.unreached].filter((element) => element.isConnected).map((element) => element.outerHTML), globalThis.unseen]);
  for (const html of unreached) faults.push(`${path}: the tab key does not reach ${html.slice(0, 200)}`);
  for (const html of unseen) faults.push(`${path}: the focus cannot be seen at ${html.slice(0, 200)}`);
  return count;
}

async function look(page, path, screen, theme) {
  const where = `${path} (${screen}, ${theme})`;
  // Opens collapsed parts, so that their content is checked too.
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
let dialogs = 0;
let reached = 0;
try {
  browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"], timeout: PATIENCE });
  const start = await browser.newPage();
  await start.goto(base);
  const linked = await start.evaluate(() => [...document.querySelectorAll("nav a")].map((link) => link.pathname));
  await start.close();
  // The navigation does not link to the page about changed events, so its path is added here.
  const documentation = ["/", ...new Set(linked), "/docs/changes/events"];
  if (documentation.length < 10) throw new Error(`the navigation has only ${linked}`);
  let session;
  for (const screen of Object.keys(SCREENS)) {
    for (const theme of ["light", "dark"]) {
      const page = await browser.newPage();
      page.setDefaultTimeout(PATIENCE);
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
      for (const language of LANGUAGES) {
        session ? await page.goto(`${base}/settings`) : await page.goto(link);
        await page.waitForSelector("#page:not([hidden])");
        if (!session) {
          await page.evaluate(async (hook, text) => {
            const ask = async (method, path, body) => {
              const response = await fetch(`/settings/v1${path}`, { method, ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }) });
              if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}`);
              return (await response.json()).data;
            };
            const { webhook } = await ask("POST", "/webhooks", hook);
            await ask("POST", "/webhooks/test", { webhookId: webhook.id });
            const [{ id, body }] = await ask("GET", "/drafts");
            await ask("PATCH", "/drafts", { draftId: id, body: { ...body, text } });
            await ask("POST", "/drafts/release", { draftId: id });
            while (!(await ask("GET", "/messages/undelivered")).length) await new Promise((done) => setTimeout(done, 100));
          }, HOOK, REFUSED);
        }
        session = true;
        if ((await page.evaluate(() => document.documentElement.lang)) !== language) {
          // The choice of a language reloads the page.
          await Promise.all([page.waitForNavigation(), page.select("#language", language)]);
        }
        await page.waitForSelector(`html[lang=${language}] #page:not([hidden])`);
        const tabs = await page.evaluate(() => [...document.querySelectorAll("section[id]")].map(({ id }) => id));
        if (tabs.length !== 9) throw new Error(`the page has the tabs ${tabs}`);
        for (const tab of tabs) {
          path = `/settings#${tab}`;
          await page.goto(base + path);
          await page.waitForSelector(`#${tab}:not([hidden])`);
          await page.waitForNetworkIdle({ idleTime: 300 });
          await look(page, `${path}/${language}`, screen, theme);
          states += 1;
          if (screen === "desktop" && theme === "light" && language === "en") reached += await walkByKeyboard(page, path);
          // Checks the dialogs in two combinations only: English on a desktop with light colours, and Thai on a phone with dark colours.
          if ((screen === "phone") === (language === "th") && (theme === "dark") === (language === "th")) {
            dialogs += await lookAtDialogs(page, `${path}/${language}`, tab, screen, theme);
          }
        }
      }
      await page.close();
    }
  }
} finally {
  await browser?.close();
  demo.kill();
  rmSync(home, { recursive: true, force: true });
}
if (dialogs < 20) faults.push(`only ${dialogs} dialogs were opened`);
if (faults.length) {
  console.log([...new Set(faults)].join("\n"));
  process.exit(1);
}
console.log(sizes.join("\n"));
console.log(`${states} states of the pages and ${dialogs} of dialogs in a browser, phone and desktop, light and dark, English and Thai: no violation of axe-core, no request to another host; ${reached} links and controls of the settings page reached by keyboard`);
