// Clients' connections, and KILL.
import { ask } from "./api.js";
import { count, empty, h } from "./dom.js";

export const title = "Sessions";
export const twin = "/v1/sessions";

let place, said;

export function open(main) {
  place = h("section", { class: "card scroll" });
  said = h("p", { role: "status" });
  main.append(said, place);
}

export function show({ sessions }) {
  if (!sessions.length) return place.replaceChildren(empty("Nobody is connected."));
  const focused = document.activeElement?.dataset?.kill;
  place.replaceChildren(h("table", {},
    h("thead", {}, h("tr", {}, [["id", "n"], ["user"], ["from"], ["database"], ["command"], ["for", "n"], ["statement"], [""]].map(([each, kind]) => h("th", { class: kind }, each)))),
    h("tbody", {}, sessions.slice(0, 500).map((each) => h("tr", {}, h("td", { class: "n" }, String(each.id)), h("td", {}, each.user), h("td", {}, each.host), h("td", {}, each.database ?? ""),
      h("td", {}, h("span", { class: "pill" + (each.command === "Query" ? " view" : "") }, each.command)), h("td", { class: "n" }, `${count(each.seconds)} s`),
      h("td", {}, h("div", { class: "sql clip" }, each.statement ?? "")),
      h("td", { class: "right" }, each.command === "Query" ? h("button", { "data-kill": `q${each.id}`, onclick: () => kill(each.id, true) }, "Stop query") : null, " ",
        h("button", { class: "danger", "data-kill": String(each.id), "aria-label": `Kill connection ${each.id}`, onclick: () => kill(each.id, false) }, "Kill")))))));
  if (focused) place.querySelector(`[data-kill="${focused}"]`)?.focus();
}

async function kill(id, query) {
  try {
    await ask(`/v1/sessions/${id}${query ? "?query=true" : ""}`, { method: "DELETE" });
    said.className = "";
    said.textContent = query ? `The query of connection ${id} is stopped.` : `Connection ${id} is ended.`;
  } catch (error) {
    said.className = "error";
    said.textContent = error.message;
  }
  dispatchEvent(new Event("refresh-page"));
}
