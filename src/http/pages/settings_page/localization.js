// The texts of the settings page in the language of the reader. They come from the catalogue `texts/LANGUAGE.ftl`, which the library
// Project Fluent (`vendor/fluent-bundle.js`) reads. Error messages of the server are always in English.

const { FluentBundle, FluentResource } = globalThis.FluentBundle;

export const LANGUAGES = { en: "English", th: "ไทย" };
const CHOICE = "counterpart-language";

// Returns the language that the user chose, from the browser's storage. Returns undefined if the browser forbids access to the storage.
function chosen() {
  try {
    return localStorage.getItem(CHOICE);
  } catch {
    return undefined;
  }
}

// The language that the user chose on this page, or else the first of the browser's languages that has a catalogue, or else English.
const wanted = [chosen(), ...navigator.languages.map((tag) => tag.split("-")[0]), "en"];
export const language = wanted.find((name) => Object.hasOwn(LANGUAGES, name));
// The locale for dates: the language, the region if the browser names one, and the Gregorian calendar, which date inputs and the API use.
export const locale = `${navigator.languages.find((tag) => tag.split("-")[0] === language) ?? language}-u-ca-gregory`;
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

// Stores the language that the user chose, and shows the page again in that language. Returns false if the browser forbids access to the
// storage: the choice then has no effect.
export function choose(name) {
  try {
    localStorage.setItem(CHOICE, name);
  } catch {
    return false;
  }
  location.reload();
  return true;
}

async function catalogue() {
  try {
    const response = await fetch(`/settings/texts/${language}.ftl`);
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return await response.text();
  } catch (error) {
    const [trouble, again] = ["p", "button"].map((name) => document.createElement(name));
    trouble.textContent = `The page cannot be shown: ${error.message}.`;
    again.textContent = "Try again";
    again.addEventListener("click", () => location.reload());
    document.body.replaceChildren(trouble, again);
    throw error;
  }
}

const bundle = new FluentBundle(locale, { useIsolating: false });
bundle.addResource(new FluentResource(await catalogue()));
document.documentElement.lang = language;

// Returns a message of the catalogue, or the name if there is no such message. Callers put a message with arguments into text nodes only,
// since the arguments are data, which must not become markup.
export function t(name, values) {
  const message = bundle.getMessage(name);
  return message?.value ? bundle.formatPattern(message.value, values, []) : name;
}

// Fills the elements below `root` with their texts: the attribute `data-t` of an element names the message of the catalogue.
export function localize(root) {
  for (const element of root.querySelectorAll("[data-t]")) element.innerHTML = t(element.dataset.t);
}
