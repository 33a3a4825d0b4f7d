// Figures over time, drawn by uPlot. Stacked series are drawn as sums, the largest first.
import { h } from "./dom.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Chart {
  // `series`: [{label, colour (a variable of the style sheet), show(value)}]
  constructor(title, series, { stacked = false, log = false, value, limit } = {}) {
    Object.assign(this, { series, stacked, log, value, limit });
    this.values = series.map((each) => h("b", {}, "–"));
    this.place = h("div", { class: "chart" });
    this.element = h("section", { class: "card" },
      h("h2", {}, title, h("span", { class: "spring" }),
        series.map((each, number) => h("span", { class: "key", style: { "--c": `var(${each.colour})` } }, each.label + " ", this.values[number]))),
      this.place);
    this.data = null;
    this.watcher = new ResizeObserver(() => this.plot && this.place.clientWidth && this.plot.setSize(this.size()));
    this.watcher.observe(this.place);
  }

  size() {
    return { width: Math.max(this.place.clientWidth, 200), height: 190 };
  }

  show(time, columns) {
    this.raw = columns;
    let shown = columns;
    if (this.stacked) {
      const sums = new Array(time.length).fill(0);
      shown = columns.map((column) => column.map((value, at) => (sums[at] += value ?? 0)));
    }
    this.data = [time, ...shown.slice().reverse()];
    this.label(time.length - 1);
    if (this.plot) this.plot.setData(this.data);
    else if (this.place.clientWidth) this.draw();
  }

  label(at) {
    this.values.forEach((each, number) => { each.textContent = at < 0 ? "–" : this.value(this.raw[number][at]); });
  }

  draw() {
    this.plot?.destroy();
    const order = this.series.slice().reverse();
    const quiet = colour("--quiet");
    const tens = (plot, splits) => splits.map((each) => (each !== null && /^1e|^1$/.test(each.toExponential()) ? each : null));
    const axis = { stroke: quiet, grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 26 };
    this.plot = new uPlot({
      ...this.size(), padding: [8, 8, 0, 0], legend: { show: false }, cursor: { points: { size: 6 }, y: false },
      hooks: { setCursor: [(plot) => this.raw && this.label(plot.cursor.idx ?? this.raw[0].length - 1)] },
      scales: { y: this.log ? { distr: 3 } : { range: (plot, low, high) => [0, Math.max(high ?? 0, this.limit?.() ?? 0, 1) * 1.08] } },
      axes: [{ ...axis, values: [[3600, "{HH}:{mm}", null, null, null, null, null, null, 1], [60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] }, { ...axis, size: 62, values: (plot, splits) => splits.map((each) => (each === null ? "" : this.value(each))), ...(this.log ? { filter: tens, grid: { ...axis.grid, filter: tens } } : {}) }],
      series: [{}, ...order.map((each) => ({ label: each.label, stroke: colour(each.colour), width: 1.6, points: { show: false }, spanGaps: true, fill: this.log ? undefined : colour(each.colour) + (this.stacked ? "" : "22") }))],
    }, this.data, this.place);
  }

  restyle() {
    if (this.data && this.place.clientWidth) this.draw();
  }

  close() {
    this.watcher.disconnect();
    this.plot?.destroy();
  }
}
