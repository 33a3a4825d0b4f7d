// Statements that took 100 ms or longer.
import { clock, empty, h, ms } from "./dom.js";

export const title = "Slow";
export const twin = "/v1/slow";

let place;

export function open(main) {
  place = h("section", { class: "card scroll" });
  main.append(place);
}

export function show({ slow }) {
  if (!slow.length) return place.replaceChildren(empty("No statement has taken 100 ms or longer."));
  place.replaceChildren(h("table", {},
    h("thead", {}, h("tr", {}, [["when"], ["took", "n"], ["who"], ["database"], ["id"], ["statement"]].map(([each, kind]) => h("th", { class: kind }, each)))),
    h("tbody", {}, slow.slice(0, 200).map((each) => h("tr", {}, h("td", { class: "quiet", style: { "white-space": "nowrap" } }, clock(each.time)), h("td", { class: "n" }, ms(1000 * each.seconds)),
      h("td", {}, each.user ? `${each.user}@${each.host}` : "client library"), h("td", {}, each.database), h("td", { class: "quiet" }, each.id), h("td", {}, h("div", { class: "sql clip", title: each.text }, each.text)))))));
}
