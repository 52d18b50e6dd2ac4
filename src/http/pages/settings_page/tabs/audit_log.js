// The tab of the audit log: what was changed, when, and by whom.

import { PAGE_ROWS, add, table } from "../tabs.js";
import { stamp } from "../dom_helpers.js";
import { get, nameOf } from "../settings_api.js";
import { t } from "../localization.js";

const ROW = `<template id="change-row"><tr role="row">
  <td role="cell" data-label="${t("change-time")}"><time data-slot="at" data-time="medium"></time></td>
  <td role="cell" data-label="${t("change-who")}"><span data-slot="who"></span> <small data-slot="via"></small></td>
  <td role="cell" data-label="${t("change")}"><span data-slot="action"></span> <code data-slot="subjectId"></code></td>
  <td role="cell" data-label="${t("change-detail")}"><code class="detail" data-slot="detail"></code></td>
</tr></template>`;

function fillChange(entry, slots, text) {
  text({
    who: entry.userId ? nameOf(entry.userId) : t(`change-${entry.via}`),
    via: entry.userId && t(`change-via-${entry.via}`),
    action: entry.action,
    subjectId: entry.subjectId,
    detail: Object.entries(entry.detail ?? {}).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n"),
  });
  stamp(slots.at, entry.at);
}

add({
  name: "changes", id: "position", fill: fillChange, fetch: () => get("/audit", { limit: PAGE_ROWS }),
  more: (before) => get("/audit", { limit: PAGE_ROWS, before }),
  body: `<state>${table("changes", "change-row", ["change-time", "change-who", "change", "change-detail"])}`,
  outside: ROW,
});
