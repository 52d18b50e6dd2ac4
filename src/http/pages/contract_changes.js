// The script of the pages `/docs/changes` and `/docs/changes/events`, which list the changes between two revisions of the API. It adds a
// search field, and hides the entries that do not contain the searched text. If the heading of a section contains the text, all entries of
// the section stay. The pages can be read without the script.

const field = document.createElement("input");
field.type = "search";
const label = document.createElement("label");
label.append("Search ", field);
const box = document.createElement("fieldset");
const legend = document.createElement("legend");
legend.textContent = "Search";
box.append(legend, label);
document.querySelector("form").append(box);

// The Enter key must not submit the form, since that would load the page again.
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
field.addEventListener("input", () => {
  const wanted = field.value.trim().toLowerCase();
  const has = (element) => element.textContent.toLowerCase().includes(wanted);
  for (const section of document.querySelectorAll("main > section")) {
    const title = has(section.querySelector("h2"));
    const rows = [...section.querySelectorAll("li, tr:has(td)")];
    for (const row of rows) row.hidden = !title && !has(row);
    section.hidden = !title && rows.every((row) => row.hidden);
  }
});
