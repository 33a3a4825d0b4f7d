// A box for SQL: run it, see its plan, keep it as a view.
import { database, get, post, useDatabase } from "./api.js";
import { watch, unwatch } from "./watching.js";
import { cell, count, empty, h, ms, s } from "./dom.js";
import { layout, path } from "./layout.js";

export const title = "SQL";
const DEFINES = /^\s*(create|alter|drop|truncate|rename)\b/i;
const ROWS_SHOWN = 500;

let box, out, choice, keep;

export async function open(main, argument) {
  choice = h("select", { "aria-label": "Database", onchange: () => useDatabase(choice.value) });
  box = h("textarea", { spellcheck: "false", "aria-label": "SQL", placeholder: "SELECT …", value: argument ?? sessionStorage.getItem("millrace-sql") ?? "", oninput: () => sessionStorage.setItem("millrace-sql", box.value),
    onkeydown: (event) => { if (event.ctrlKey && event.key === "Enter") { event.preventDefault(); (event.shiftKey ? explain : run)(); } } });
  keep = h("input", { placeholder: "name of the view", "aria-label": "Name of the view", size: 18, onkeydown: (event) => event.key === "Enter" && keepView() });
  out = h("div", { role: "status" });
  main.append(h("section", { class: "card" }, box, h("div", { class: "tools", style: { margin: "10px 0 0" } }, choice,
    h("button", { class: "primary", onclick: run, id: "run" }, "Run"), h("button", { onclick: explain, id: "explain" }, "Explain"), h("button", { onclick: () => text() && watch(out, at("subscribe"), text()), id: "watch", title: "Show the rows of a key as they change" }, "Watch"), h("span", { class: "spring" }), keep, h("button", { onclick: keepView, id: "keep" }, "Keep as view"),
    h("span", { class: "quiet small" }, h("kbd", {}, "Ctrl"), "+", h("kbd", {}, "Enter"), " runs, with ", h("kbd", {}, "Shift"), " explains"))), h("div", { style: { height: "14px" } }), out);
  box.focus();
  try {
    await fillChoice();
  } catch (error) {
    failed(error);
  }
}

async function fillChoice() {
  const { databases } = await get("/v1/databases");
  const names = Object.keys(databases);
  choice.replaceChildren(...names.map((name) => h("option", { value: name, selected: name === database() }, name)));
  if (!names.length) choice.append(h("option", { value: "" }, "no database yet"));
  else if (!names.includes(database())) useDatabase(names[0]);
  choice.title = (databases[choice.value] ?? []).join(", ");
}

const at = (path) => `/v1/databases/${encodeURIComponent(choice.value)}/${path}`;
const text = () => box.value.trim().replace(/;\s*$/, "");

export function show() {}

export const close = unwatch;

function failed(error) {
  out.replaceChildren(h("p", { class: "note error", role: "alert" }, error.code ? `${error.code}: ` : "", error.message));
}

async function run() {
  if (!text()) return;
  unwatch();
  if (/^\s*explain\b/i.test(text())) { box.value = text().replace(/^\s*explain\s+/i, ""); return explain(); }
  const started = performance.now();
  try {
    if (DEFINES.test(text())) {
      await post(choice.value ? at("program") : "/v1/program", { sql: text() });
      out.replaceChildren(h("p", { class: "note" }, `Done in ${ms(performance.now() - started)}.`));
      return await fillChoice();
    }
    const { results: [found] } = await post(at("transactions"), { statements: [{ sql: text() }] });
    const took = ms(performance.now() - started);
    if (!found.columns.length) return out.replaceChildren(h("p", { class: "note" }, `${count(found.affected)} rows changed in ${took}.`));
    out.replaceChildren(h("section", { class: "card scroll" }, h("h2", {}, `${count(found.rows.length)} rows in ${took}`, h("button", { class: "plain", onclick: explain }, "explain this query")),
      found.rows.length ? h("table", {}, h("thead", {}, h("tr", {}, found.columns.map((each) => h("th", {}, each)))), h("tbody", {}, found.rows.slice(0, ROWS_SHOWN).map((row) => h("tr", {}, row.map(cell))))) : empty("No rows."),
      found.rows.length > ROWS_SHOWN ? h("p", { class: "quiet" }, `The first ${ROWS_SHOWN} are shown.`) : null));
  } catch (error) {
    failed(error);
  }
}

async function explain() {
  if (!text()) return;
  unwatch();
  // A query of the page of queries has ? for its values: any will do for the plan.
  const places = (text().replace(/'[^']*'|"[^"]*"|`[^`]*`/g, "").match(/\?/g) ?? []).length;
  try {
    const found = await post(at("explain"), { sql: text(), parameters: new Array(places).fill(1) });
    out.replaceChildren(h("section", { class: "card plan" }, h("h2", {}, "Plan"),
      h("p", {}, found.view ? h("span", { class: "pill view" }, found.kept === null ? "would be a maintained view" : "a maintained view") : h("span", { class: "pill evaluated" }, found.why ? "evaluated on each read" : "a write"), " ",
        found.view && found.kept !== null ? [`The view has ${count(found.kept)} keys: `, h("a", { href: `#graph/${found.view}` }, "show the view in the graph")] : found.view ? "millrace makes the view when the query comes again." : [found.why, found.why ? ". " : "", found.advice]),
      await drawn(found.plan)));
  } catch (error) {
    failed(error);
  }
}

async function drawn(plan) {
  const nodes = [], edges = [];
  const add = (each) => {
    const id = String(nodes.length);
    const lines = wrapped(each.text);
    nodes.push({ id, lines, width: 18 + 7.1 * Math.max(...lines.map((line) => line.length)), height: 14 + 17 * lines.length });
    for (const input of each.inputs) edges.push([id, add(input)]);
    return id;
  };
  add(plan);
  const placed = await layout(nodes.map(({ id, width, height }) => ({ id, width, height })), edges, "TB");
  return s("svg", { viewBox: `0 0 ${placed.width} ${placed.height}`, role: "img", "aria-label": "Plan", style: `max-width:${placed.width}px` },
    placed.paths.map(([, , points]) => s("path", { d: path(points) })),
    nodes.map((each, number) => {
      const [x, y] = placed.places[each.id];
      return s("g", { class: number ? "" : "first", transform: `translate(${x - each.width / 2},${y - each.height / 2})` }, s("rect", { width: each.width, height: each.height }),
        each.lines.map((line, at) => s("text", { x: 9, y: 20 + 17 * at }, line)));
    }));
}

function wrapped(long) {
  const lines = [""];
  for (const word of long.split(" ")) {
    if ((lines.at(-1) + " " + word).length > 46 && lines.at(-1)) lines.push("");
    lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  return lines;
}

async function keepView() {
  const name = keep.value.trim();
  if (!name) { keep.focus(); return failed(new Error("Give the view a name.")); }
  try {
    await post(at("program"), { sql: `CREATE VIEW \`${name.replaceAll("`", "``")}\` AS ${text()}` });
    await fillChoice();
    out.replaceChildren(h("p", { class: "note" }, "The view ", h("code", {}, name), " is defined. It is maintained from its first use on: ",
      h("button", { class: "plain", onclick: () => { box.value = `SELECT * FROM ${name}`; run(); } }, `SELECT * FROM ${name}`)));
  } catch (error) {
    failed(error);
  }
}
