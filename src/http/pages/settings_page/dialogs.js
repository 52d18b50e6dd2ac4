// Dialogs of the settings page.

import { announce, one } from "./dom_helpers.js";
import { known } from "./settings_api.js";
import { t } from "./localization.js";

// Makes an error message of the server readable for users. A message may begin with the name of a property, such as `body.url`. If the form
// has an input for this property (here an input with the name `url`), the label of the input replaces the name in the message.
export function readable(message, form) {
  const [prefix, member] = /^`(?:body\.)?([\w.[\]]+)`:? */.exec(message) ?? ["", ""];
  const input = form?.elements[member.split(/[.[]/)[0]];
  // For several check boxes with the same name, the label is the legend of their group.
  const label = input?.labels?.[0]?.firstChild ?? input?.[0]?.closest("fieldset")?.firstElementChild;
  const rest = message.slice(prefix.length);
  const whole = label ? `${label.textContent.trim()}: ${rest}` : `${member} ${rest}`.trim();
  return whole.charAt(0).toUpperCase() + whole.slice(1);
}

// Opens a dialog, and calls `perform` with the form's data when the user submits the form. Resolves to the result of `perform`, or to
// undefined if the user closes the dialog. If `perform` returns undefined, the dialog stays open. If `perform` throws an error, the dialog
// stays open and shows the error message. When the dialog closes, the browser returns the focus to the element that had the focus before.
export function openDialog(dialog, perform) {
  const form = one("form", dialog);
  const failure = one(".failure", dialog);
  const refuse = (text) => failure && (failure.textContent = text);
  let busy = false;
  refuse("");
  return new Promise((done) => {
    // While a request is in progress, closing the dialog does not resolve the promise: a secret in the response must still be shown.
    dialog.onclose = () => busy || done(undefined);
    form.onsubmit = async (event) => {
      event.preventDefault();
      if (busy) return;
      busy = true;
      refuse("");
      try {
        const result = await perform(new FormData(form, event.submitter));
        if (result !== undefined) {
          done(result);
          dialog.close();
        }
      } catch (refused) {
        const reason = readable(refused.message, form);
        refuse(reason);
        if (!dialog.open && known.session) announce(reason);
        // A message that begins with the name of a property, such as `body.url`, names the input to correct. That input gets the focus.
        form.elements[/^`body\.(\w+)/.exec(refused.message)?.[1]]?.focus?.();
      } finally {
        busy = false;
        if (!dialog.open) done(undefined);
      }
    };
    dialog.showModal();
  });
}

// Asks the user to confirm an action, performs the action, and shows the new secret if the result contains one. Resolves to the result of
// the action, or to undefined if the user does not confirm.
//   yes: the text of the button that confirms
//   perform: performs the action; its argument is whether the user ticked the check box
//   box: the text of the check box; without it, the dialog has no check box
//   secretOf: the heading above the secret
//   note: returns the text below the secret; its argument is whether the user ticked the check box
//   grave: whether the button that confirms is red, for an action that destroys something
export async function confirmDialog(title, text, yes, perform, { secretOf, note, box, grave = false } = {}) {
  one("#confirm-title").textContent = title;
  one("#confirm-text").textContent = text;
  one("#confirm-box").hidden = !box;
  one("#confirm-box span").textContent = box ?? "";
  one("#confirm-box input").checked = false;
  one("#confirm-yes").textContent = yes;
  one("#confirm-yes").classList.toggle("danger", grave);
  let ticked;
  const result = await openDialog(one("#confirm-dialog"), (data) => perform((ticked = data.has("box"))));
  if (result?.secret) await showSecret(secretOf, result.secret, note(ticked));
  return result;
}

export async function showSecret(title, secret, note) {
  one("#secret-title").textContent = title;
  one("#secret").textContent = secret;
  one("#secret-note").textContent = note;
  one("#copied").textContent = "";
  await openDialog(one("#secret-dialog"), () => true);
  one("#secret").textContent = "";
}

// The server returns a secret only once, so the dialog with a secret does not close when the user presses Escape by accident.
one("#secret-dialog").addEventListener("keydown", (event) => event.key === "Escape" && event.preventDefault());
one("#secret-dialog").addEventListener("cancel", (event) => event.preventDefault());

export async function copy() {
  try {
    await navigator.clipboard.writeText(one("#secret").textContent);
    one("#copied").textContent = t("copied");
  } catch {
    // Without TLS, browsers offer no clipboard. The secret is then selected, so that the user can copy it.
    getSelection().selectAllChildren(one("#secret"));
    one("#copied").textContent = t("selected");
  }
}
