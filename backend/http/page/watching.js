// The rows of one key of a view, shown as they change: a subscription for as long as somebody looks.
import { listen } from "./api.js";
import { cell, empty, h } from "./dom.js";

const ROWS_SHOWN = 200;
const AGAIN_MS = 1000;
let watching = null;

export function unwatch() {
  watching?.abort();
  watching = null;
}

// `query` has a ? for each column of the key, or none.
export function watch(out, path, query) {
  unwatch();
  const places = (query.replace(/'[^']*'|"[^"]*"|`[^`]*`/g, "").match(/\?/g) ?? []).length;
  if (!places) return begin(out, path, query, []);
  const inputs = Array.from({ length: places }, (_, place) => h("input", { "aria-label": `Key ${place + 1}`, size: 14, placeholder: '7 or "tea"', onkeydown: (event) => event.key === "Enter" && start() }));
  const problem = h("p", { class: "note error", role: "alert", hidden: true });
  const start = () => {
    try {
      begin(out, path, query, inputs.map((each) => JSON.parse(each.value)));
    } catch (error) {
      problem.hidden = false;
      problem.textContent = `A key is written as JSON: ${error.message}`;
    }
  };
  out.replaceChildren(h("section", { class: "card" }, h("h2", {}, "Which key?"), h("div", { class: "tools" }, inputs, h("button", { class: "primary", id: "watch-key", onclick: start }, "Watch"), problem)));
  inputs[0].focus();
}

async function begin(out, path, query, key) {
  const mine = (watching = new AbortController());
  const title = h("h2", {}, "Watching…"), table = h("div", { class: "scroll" }), state = h("span", { class: "quiet small", id: "watch-state" });
  out.replaceChildren(h("section", { class: "card", id: "watched" }, title, table, state));
  let changes = -1, before = new Set();
  const heard = (event, found) => {
    if (event === "error") throw new Error(found.error.message);
    changes += 1;
    title.textContent = `${found.rows.length} rows, changed ${changes} times`;
    state.textContent = `as of ${new Date().toLocaleTimeString()}`;
    const names = found.rows.map((row) => JSON.stringify(row));
    table.replaceChildren(found.rows.length ? h("table", {}, h("thead", {}, h("tr", {}, found.columns.map((each) => h("th", {}, each)))),
      h("tbody", {}, found.rows.slice(0, ROWS_SHOWN).map((row, at) => h("tr", { class: changes && !before.has(names[at]) ? "fresh" : null }, row.map(cell))))) : empty("No rows."));
    before = new Set(names);
  };
  while (watching === mine) {
    try {
      await listen(path, { query, keys: [key.length === 1 ? key[0] : key] }, mine.signal, heard);
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error.status && error.status !== 503) return out.replaceChildren(h("p", { class: "note error", role: "alert" }, error.code ? `${error.code}: ` : "", error.message));
      state.textContent = `no answer: ${error.message}`;
    }
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}
