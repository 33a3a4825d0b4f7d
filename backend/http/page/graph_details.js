// What a click on the graph tells: plan, key, queries, memory, evictions.
import { useDatabase } from "./api.js";
import { bytes, clock, count, h, ms, percent } from "./dom.js";
import { name } from "./graph.js";

export function details(each, all, choose, close) {
  const byId = new Map(all.map((one) => [one.id, one]));
  const parts = [h("h2", {}, h("span", {}, name(each)), h("span", { class: "spring" }), h("button", { class: "icon", "aria-label": "Close", onclick: close }, "✕")),
    h("div", { class: "quiet small" }, { table: "table", node: each.node, view: `view ${each.name}` }[each.kind])];
  if (each.kind === "view") parts.push(...viewParts(each));
  else parts.push(facts([["changed rows", count(each.rows)], ["now", `${count(each.rows_per_s)} rows/s`], ["time", `${percent(each.busy, 1)} of a core`], ["memory", bytes(each.bytes)], ["keys", count(each.keys)], ["state", each.state || "no state is kept"]]),
    each.indexes.length ? [h("h3", {}, "Indexes"), h("ul", { class: "tree" }, each.indexes.map((text) => h("li", {}, text)))] : null);
  parts.push(h("h3", {}, "Plan"), h("ul", { class: "tree" }, each.kind === "view" ? (byId.has(each.node) ? step(byId.get(each.node), byId, choose) : h("li", {}, each.definition)) : step(each, byId, choose)));
  const users = all.filter((one) => one.inputs.includes(each.id));
  if (users.length) parts.push(h("h3", {}, "Used by"), h("ul", { class: "tree" }, users.slice(0, 40).map((one) => h("li", {}, link(one, choose))), users.length > 40 ? h("li", {}, `and ${users.length - 40} more`) : null));
  return h("div", {}, parts);
}

function viewParts(each) {
  const hits = each.hits + each.shared_hits;
  return [
    facts([["state", each.state === "full" ? `full: ${each.reason}` : each.state === "set aside" ? `set aside: ${each.reason}` : "partial: the keys that were asked for"],
      ["key", each.key_columns.join(", ") || "none"], ["keys", count(each.keys)], ["rows", count(each.rows)], ["memory", bytes(each.bytes)],
      ["hit rate", percent(hits, hits + each.misses)], ["hits in shared memory", count(each.shared_hits)], ["hits in the worker", count(each.hits)], ["misses (each filled its key)", count(each.misses)], ["time of a fill, p95", ms(each.fill_p95_ms)], ["evictions", count(each.evictions)], ["since", clock(each.since)]]),
    h("h3", {}, "Tables"), h("div", {}, each.tables.join(", ")),
    each.named_views.length ? [h("h3", {}, "Reads the named views"), h("div", {}, each.named_views.join(", "))] : null,
    h("h3", {}, each.queries.length === 1 ? "Query" : "Queries"),
    each.queries.length ? each.queries.map((text) => h("pre", { class: "sql" }, text, "\n", h("a", { href: `#sql/${encodeURIComponent(text)}`, onclick: () => each.tables[0] && useDatabase(each.tables[0].split(".")[0]) }, "open in the SQL box"))) : h("p", { class: "quiet" }, "None since the processes began."),
  ];
}

function facts(pairs) {
  return h("dl", {}, pairs.map(([what, value]) => [h("dt", {}, what), h("dd", {}, value)]));
}

function link(each, choose) {
  return h("button", { class: "plain", onclick: () => choose(each.id) }, name(each));
}

function step(each, byId, choose) {
  return h("li", {}, link(each, choose), h("span", { class: "quiet small" }, each.state ? ` ${each.state}` : ""),
    each.inputs.length ? h("ul", { class: "tree" }, each.inputs.filter((id) => byId.has(id)).map((id) => step(byId.get(id), byId, choose))) : null);
}
