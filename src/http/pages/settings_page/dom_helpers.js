// DOM helpers of the settings page: they find elements, and show records in elements. Data from the settings API is put into text nodes
// only, so that the browser shows markup in the data, for example in a name, as text.

import { locale } from "./localization.js";

export const one = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Appends markup that is written in the page's own scripts. The markup never contains data from the settings API.
export function append(parent, markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  parent.append(template.content);
}

export const clock = (instant, style) => new Intl.DateTimeFormat(locale, style).format(new Date(instant));

export function stamp(element, instant, otherwise = "–") {
  element.textContent = instant ? clock(instant, { dateStyle: "medium", timeStyle: element.dataset.time }) : otherwise;
  element.title = instant ?? "";
  if (instant) element.dateTime = instant;
  else element.removeAttribute("datetime");
}

export function badge(element, text, tone) {
  element.textContent = text;
  element.dataset.tone = tone;
}

const MESSAGE_MILLIS = 8000;
let clearing;
export function announce(text) {
  one("#message").textContent = text;
  clearTimeout(clearing);
  clearing = setTimeout(() => (one("#message").textContent = ""), MESSAGE_MILLIS);
}

// Shows records as the rows of a list. A refresh reuses the existing row of a record, so that an element in the row keeps the focus.
//   id: the name of the property that identifies a record
//   label: the name of the property that names a record to a screen reader, or a function that returns this text
//   fill: shows a record in its row. Its arguments are the record, the elements of the row by their `data-slot`, a function that sets the
//     texts of these elements, and a function that returns the row's button with a given `data-act`.
export function show(list, records, { id, label, fill }) {
  const ids = new Set(records.map((record) => String(record[id])));
  for (const row of [...list.children]) if (!ids.has(row.dataset.id)) row.remove();
  const kept = new Map([...list.children].map((row) => [row.dataset.id, row]));
  const template = document.getElementById(list.dataset.row).content.firstElementChild;
  let next = list.firstElementChild;
  for (const record of records) {
    let row = kept.get(String(record[id]));
    if (row && row === next) {
      next = next.nextElementSibling;
    } else {
      row ??= template.cloneNode(true);
      row.dataset.id = record[id];
      list.insertBefore(row, next);
    }
    const slots = Object.fromEntries(all("[data-slot]", row).map((slot) => [slot.dataset.slot, slot]));
    const text = (values) => Object.entries(values).forEach(([name, value]) => (slots[name].textContent = value ?? ""));
    fill(record, slots, text, (act) => one(`[data-act=${act}]`, row));
    // The buttons have the same text in every row. So the label, which a screen reader speaks, also names the record of the row.
    for (const button of all("button", row)) button.ariaLabel = `${button.textContent} ${typeof label === "function" ? label(record) : record[label]}`;
  }
}

export function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

// Shows a check box for each entry, which is a pair of a value and a text.
export function boxes(container, name, entries, ticked) {
  container.replaceChildren(...entries.map(([value, text]) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    Object.assign(box, { type: "checkbox", name, value, checked: ticked.includes(value) });
    label.className = "box";
    label.append(box, ` ${text}`);
    return label;
  }));
}
