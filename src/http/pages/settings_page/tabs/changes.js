// The tab of the log of changes.

import { PAGE_ROWS, add, table } from "../sections.js";
import { stamp } from "../elements.js";
import { get, nameOf } from "../plane.js";

const ROW = `<template id="change-row"><tr role="row">
  <td role="cell" data-label="Time"><time data-slot="at" data-time="medium"></time></td>
  <td role="cell" data-label="Who"><span data-slot="who"></span> <small data-slot="via"></small></td>
  <td role="cell" data-label="Change"><span data-slot="action"></span> <code data-slot="subjectId"></code></td>
  <td role="cell" data-label="Detail"><code class="detail" data-slot="detail"></code></td>
</tr></template>`;

function fillChange(entry, slots, text) {
  text({
    who: entry.userId ? nameOf(entry.userId) : entry.via === "system" ? "the server" : "command line",
    via: entry.userId && `by ${entry.via.replace("_", " ")}`,
    action: entry.action,
    subjectId: entry.subjectId,
    detail: Object.entries(entry.detail ?? {}).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n"),
  });
  stamp(slots.at, entry.at);
}

add({
  name: "changes", title: "Changes", id: "position", fill: fillChange, fetch: () => get("/audit", { limit: PAGE_ROWS }),
  more: (before) => get("/audit", { limit: PAGE_ROWS, before }), empty: "Nothing was changed yet.",
  body: `<p class="hint">Changes on this page, with a machine's token and by the command line, the newest first.</p>
    <state>${table("changes", "change-row", ["Time", "Who", "Change", "Detail"])}`,
  outside: ROW,
});
