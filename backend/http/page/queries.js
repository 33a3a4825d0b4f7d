// Every query that clients have sent: what answered it, how fast, and what would make it a view.
import { useDatabase } from "./api.js";
import { bar, clock, count, empty, h, ms } from "./dom.js";

export const title = "Queries";
export const twin = "/v1/queries";

const COLUMNS = [
  ["query", (each) => each.text], ["answered", (each) => each.answered], ["from", (each) => each.hits], ["count", (each) => each.count],
  ["p50", (each) => each.p50_ms], ["p95", (each) => each.p95_ms], ["p99", (each) => each.p99_ms], ["total time", (each) => each.mean_ms * each.count],
];
const KINDS = [["", "all"], ["view", "from views"], ["evaluated", "evaluated"], ["written", "writes"]];

let body, found, order, kind, opened, search, chips;

export function open(main) {
  [found, order, kind, opened] = [[], { by: 7, down: true }, "", new Set()];
  search = h("input", { type: "search", placeholder: "search ( / )", "aria-label": "Search queries", oninput: draw });
  chips = h("div", { class: "chips", role: "group", "aria-label": "Which" }, KINDS.map(([name, text]) =>
    h("button", { "aria-pressed": String(name === kind), onclick: (event) => { kind = name; for (const each of chips.children) each.setAttribute("aria-pressed", String(each === event.target)); draw(); } }, text)));
  body = h("div", {});
  main.append(h("div", { class: "tools" }, search, chips, h("span", { class: "quiet" }, "values are shown as ?")), h("section", { class: "card scroll" }, body));
}

export function show(answer) {
  found = answer.queries;
  draw();
}

function draw() {
  const text = search.value.toLowerCase();
  const chosen = found.filter((each) => (!kind || each.answered === kind) && (!text || (each.database + " " + each.text).toLowerCase().includes(text)));
  const [, value] = COLUMNS[order.by];
  chosen.sort((one, other) => { const a = value(one), b = value(other); return (a > b ? 1 : a < b ? -1 : 0) * (order.down ? -1 : 1); });
  if (!chosen.length) return body.replaceChildren(empty(found.length ? "No query matches." : "No statement yet. Statements appear here as clients send them."));
  const focused = document.activeElement?.dataset?.name;
  body.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, COLUMNS.map(([name], number) => h("th", {
    class: number > 2 ? "n" : "", tabindex: 0, "aria-sort": number === order.by ? (order.down ? "descending" : "ascending") : "none",
    onclick: () => sortBy(number), onkeydown: (event) => event.key === "Enter" && sortBy(number),
  }, name)))), h("tbody", {}, chosen.slice(0, 300).map(row))));
  if (focused) body.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus();
}

function sortBy(number) {
  order = { by: number, down: number === order.by ? !order.down : number > 1 };
  draw();
}

function row(each) {
  const name = `${each.database} ${each.text}`;
  const reads = each.hits + each.asked + each.evaluated;
  const toggle = () => { if (!opened.delete(name)) opened.add(name); draw(); };
  const line = h("tr", { class: "opens", tabindex: 0, "data-name": name, "aria-expanded": String(opened.has(name)), onclick: toggle, onkeydown: (event) => { if (event.key === "Enter") toggle(); } },
    h("td", {}, h("div", { class: "sql" + (opened.has(name) ? "" : " clip") }, each.text), h("span", { class: "quiet small" }, each.database)),
    h("td", {}, h("span", { class: "pill " + each.answered }, { view: "view", evaluated: "evaluated", written: "write" }[each.answered])),
    h("td", {}, reads ? bar([[each.hits, "var(--hit)", "from shared memory"], [each.asked, "var(--asked)", "asked of a view"], [each.evaluated, "var(--evaluated)", "evaluated"]], reads) : ""),
    [count(each.count), ms(each.p50_ms), ms(each.p95_ms), ms(each.p99_ms), ms(each.mean_ms * each.count)].map((text) => h("td", { class: "n" }, text)));
  return opened.has(name) ? [line, h("tr", {}, h("td", { colspan: COLUMNS.length }, details(each)))] : [line];
}

function details(each) {
  return h("div", {},
    each.why ? h("p", { class: "note" }, h("b", {}, "Evaluated on each read: "), each.why + ". ", each.advice) : null,
    each.views.length ? h("p", {}, `Answered from ${each.views.length === 1 ? "the view " : each.views.length + " views (one for each set of constants): "}`,
      each.views.slice(0, 8).map((name, at) => [at ? ", " : "", h("a", { href: `#graph/${name}` }, name.slice(0, 10))])) : null,
    h("p", { class: "quiet" }, each.answered === "written" ? "" : `${count(each.hits)} from shared memory, ${count(each.asked)} asked of a view, ${count(each.evaluated)} evaluated; `, `longest ${ms(each.longest_ms)}; last at ${clock(each.last)}${each.last_id ? `, id ${each.last_id}` : ""}. `,
      h("a", { href: `#sql/${encodeURIComponent(each.text)}`, onclick: () => useDatabase(each.database) }, "Open in the SQL box")));
}
