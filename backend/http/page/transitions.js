// Views as they come, are filled, and go.
import { clock, count, empty, h } from "./dom.js";

export const title = "Transitions";
export const twin = "/v1/transitions";

let place;

export function open(main) {
  place = h("div", {});
  main.append(place);
}

export function show({ filling, past }) {
  place.replaceChildren(
    h("section", { class: "card scroll", style: { "margin-bottom": "14px" } }, h("h2", {}, "Being filled now"), filling.length ? h("table", {},
      h("thead", {}, h("tr", {}, ["view", "tables", "part", "rows read", "changes to apply", "round", "shard"].map((each, at) => h("th", { class: at > 2 ? "n" : "" }, each)))),
      h("tbody", {}, filling.map((each) => h("tr", {}, h("td", {}, link(each.view)), h("td", {}, each.tables.join(", ")), h("td", {}, each.keys ? `${count(each.keys)} keys` : "all rows"),
        [each.rows, each.behind, each.round, each.shard].map((value) => h("td", { class: "n" }, count(value))))))) : empty("No view is being filled.")),
    h("section", { class: "card scroll" }, h("h2", {}, "Past transitions"), past.length ? h("table", {},
      h("tbody", {}, past.slice(0, 200).map((each) => h("tr", {}, h("td", { class: "quiet" }, clock(each.time)), h("td", {}, each.view ? link(each.view) : ""),
        h("td", {}, h("span", { class: "pill " + (/aside/.test(each.what) ? "bad" : /not maintained/.test(each.what) ? "" : each.view ? "view" : "written") }, each.what)),
        h("td", {}, each.tables.join(", ")), h("td", { class: "quiet small" }, each.definition))))) : empty("No transition yet.")));
}

function link(view) {
  return h("a", { href: `#graph/${view}` }, h("code", {}, view.slice(0, 10)));
}
