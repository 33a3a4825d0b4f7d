// How the cluster is: figures, charts, processes, shards, kinds of statements.
import { Chart } from "./charts.js";
import { bar, bytes, count, h, ms, percent } from "./dom.js";

export const title = "Overview";
export const twin = "/v1/overview";

let place, charts, limit;

export function open(main) {
  limit = 0;
  charts = {
    reads: new Chart("Reads per second", [
      { label: "from shared memory", colour: "--hit" }, { label: "asked of a view", colour: "--asked" }, { label: "evaluated", colour: "--evaluated" },
    ], { stacked: true, value: count }),
    times: new Chart("Time in the server", [{ label: "p50", colour: "--hit" }, { label: "p95", colour: "--asked" }, { label: "p99", colour: "--evaluated" }], { log: true, value: ms }),
    writes: new Chart("Other statements per second", [{ label: "writes", colour: "--write" }, { label: "other", colour: "--other" }], { stacked: true, value: count }),
    memory: new Chart("Memory of views", [{ label: "all shards", colour: "--hit" }], { value: (value) => bytes(Math.round(value ?? 0)) }),
  };
  place = { figures: h("div", { class: "cards" }), tables: h("div", {}), problems: h("div", {}) };
  main.append(place.problems, place.figures, h("div", { class: "grid" }, Object.values(charts).map((each) => each.element)), place.tables);
}

const last = (list) => (list.length ? list[list.length - 1] : 0);

export function show(found) {
  const { moments } = found;
  limit = found.shards.reduce((sum, each) => sum + each.limit_bytes, 0);
  const hits = last(moments.hits), asked = last(moments.asked), evaluated = last(moments.evaluated);
  const reads = hits + asked + evaluated;
  const held = found.shards.reduce((sum, each) => sum + each.view_bytes, 0);
  place.problems.replaceChildren(...found.problems.map((each) => h("p", { class: "note error", role: "alert" }, each)));
  place.figures.replaceChildren(
    figure("Reads", count(reads), "/s", bar([[hits, "var(--hit)", "from shared memory"], [asked, "var(--asked)", "asked of a view"], [evaluated, "var(--evaluated)", "evaluated"]], reads)),
    figure("Hit rate", percent(hits + asked, reads), "", h("span", { class: "quiet small" }, `of reads come from views; ${count(evaluated)}/s are evaluated`)),
    figure("Writes", count(last(moments.writes)), "/s", h("span", { class: "quiet small" }, `${count(last(moments.other))}/s other statements`)),
    figure("p95", ms(last(moments.p95_ms) || null), "", h("span", { class: "quiet small" }, `p50 ${ms(last(moments.p50_ms) || null)}, p99 ${ms(last(moments.p99_ms) || null)}`)),
    figure("Views", count(found.shards.reduce((sum, each) => Math.max(sum, each.views), 0)), "", h("a", { class: "small", href: "#graph" }, "see the graph")),
    figure("Memory of views", bytes(held), "", h("span", { class: "quiet small" }, `of ${bytes(limit)}`), bar([[held, held > 0.9 * limit ? "var(--bad)" : "var(--hit)", "bytes"]], limit)),
    figure("Sessions", count(found.sessions), "", h("a", { class: "small", href: "#sessions" }, "see the sessions")),
  );
  charts.reads.show(moments.time, [moments.hits, moments.asked, moments.evaluated]);
  charts.times.show(moments.time, [moments.p50_ms, moments.p95_ms, moments.p99_ms]);
  charts.writes.show(moments.time, [moments.writes, moments.other]);
  charts.memory.show(moments.time, [moments.view_bytes]);
  place.tables.replaceChildren(h("div", { class: "grid" }, shards(found.shards), processes(found), kinds(found.kinds)));
}

function figure(name, value, unit, ...below) {
  return h("section", { class: "card" }, h("h2", {}, name), h("div", { class: "figure" }, value, " ", h("small", {}, unit)), below);
}

function table(name, heads, rows) {
  return h("section", { class: "card" }, h("h2", {}, name), h("div", { class: "scroll" },
    h("table", {}, h("thead", {}, h("tr", {}, heads.map((each) => h("th", { class: each[1] }, each[0])))), h("tbody", {}, rows))));
}

function shards(found) {
  return table("Shards", [["shard"], ["state"], ["epoch", "n"], ["views", "n"], ["memory of views"], ["process", "n"], ["on disk", "n"], ["longest hold", "n"]], found.map((each) => h("tr", {},
    h("td", {}, String(each.shard)),
    h("td", {}, h("span", { class: "pill " + (each.error ? "bad" : "good") }, each.error || "serves")),
    h("td", { class: "n" }, count(each.epoch)), h("td", { class: "n" }, count(each.views)),
    h("td", {}, bar([[each.view_bytes, "var(--hit)", "bytes"]], each.limit_bytes), h("span", { class: "quiet small" }, `${bytes(each.view_bytes)} of ${bytes(each.limit_bytes)}`)),
    h("td", { class: "n" }, bytes(each.resident_bytes)), h("td", { class: "n" }, bytes(each.stored_bytes)), h("td", { class: "n" }, ms(each.longest_hold_ms)))));
}

function processes(found) {
  return table("Processes", [["process"], ["pid", "n"], ["restarts", "n"], ["state"]], found.processes.map((each) => h("tr", {},
    h("td", {}, each.name, String(each.process) === found.leader ? h("span", { class: "quiet" }, " leads") : null),
    h("td", { class: "n" }, String(each.process ?? "–")), h("td", { class: "n" }, count(each.restarts)),
    h("td", {}, h("span", { class: "pill " + (each.process ? "good" : "bad") }, each.process ? "runs" : "does not run")))));
}

function kinds(found) {
  return table("Statements since the start", [["kind"], ["count", "n"], ["answered from"], ["errors", "n"], ["mean", "n"], ["p95", "n"]], found.map((each) => h("tr", {},
    h("td", {}, each.kind), h("td", { class: "n" }, count(each.count)),
    h("td", {}, each.hits + each.asked + each.evaluated ? bar([[each.hits, "var(--hit)", "from shared memory"], [each.asked, "var(--asked)", "asked of a view"], [each.evaluated, "var(--evaluated)", "evaluated"]], each.hits + each.asked + each.evaluated) : ""),
    h("td", { class: "n" }, count(each.errors)), h("td", { class: "n" }, ms(each.mean_ms)), h("td", { class: "n" }, ms(each.p95_ms)))));
}

export function restyle() {
  Object.values(charts ?? {}).forEach((each) => each.restyle());
}

export function close() {
  Object.values(charts).forEach((each) => each.close());
}
