// The script of the documentation pages. It remembers the programming language that the reader chose for examples, and adds a button that
// copies an example. The pages can be read without the script.

const KEY = "language of examples";
const choices = (language) => document.querySelectorAll(`.example input[value="${language}"]`);

// The browser may forbid access to the storage; then the chosen language is kept only until the user leaves the page.
const stored = () => {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
};
const store = (language) => {
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // The browser may forbid access to the storage. The choice is then not stored.
  }
};

function choose(language) {
  for (const input of choices(language)) input.checked = true;
}

const known = stored();
if (/^\w+$/.test(known ?? "")) choose(known);
document.addEventListener("change", ({ target }) => {
  if (!target.closest(".example")) return;
  // The example whose language the user changed stays at its position on the screen, although examples above it change their height.
  const top = target.getBoundingClientRect().top;
  choose(target.value);
  scrollBy(0, target.getBoundingClientRect().top - top);
  store(target.value);
});

for (const example of document.querySelectorAll(".example")) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "copy", textContent: "Copy" });
  button.addEventListener("click", async () => {
    const code = [...example.querySelectorAll("pre")].find((pre) => getComputedStyle(pre).display !== "none");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // Without TLS, browsers offer no clipboard. The code is then selected, so that the user can copy it.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  example.querySelector("fieldset").append(button);
}
