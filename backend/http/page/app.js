// The frame: pages, who is logged in, light and dark, keys, and the clock that asks again.
import { get, keep, known, logIn, logOut, user } from "./api.js";
import { h } from "./dom.js";
import * as graph from "./graph.js";
import * as overview from "./overview.js";
import * as queries from "./queries.js";
import * as sessions from "./sessions.js";
import * as slow from "./slow.js";
import * as sql from "./sql.js";
import * as transitions from "./transitions.js";

// Each has a title, the path of its JSON twin, `open(main)`, and `show(found)` for what has come; and may have `close()`.
const PAGES = { overview, graph, queries, transitions, slow, sessions, sql };
const REFRESH_MS = 2000;
const main = document.getElementById("main");
const root = document.documentElement;
let page = null;
let timer = 0;
let turn = 0;

function theme(wanted) {
  root.dataset.theme = wanted;
  localStorage.setItem("millrace-theme", wanted);
  page?.restyle?.();
}

async function open() {
  const [name, argument] = location.hash.slice(1).split("/", 2);
  page?.close?.();
  page = PAGES[name] ?? overview;
  for (const link of document.querySelectorAll("nav a")) link.toggleAttribute("aria-current", link.hash === "#" + (name in PAGES ? name : "overview"));
  main.replaceChildren();
  main.className = page.whole ? "whole" : "";
  document.title = `${page.title} · millrace`;
  document.getElementById("twin").href = page.twin ?? "/openapi.json";
  document.getElementById("twin").textContent = page.twin ? `JSON: ${page.twin}` : "OpenAPI";
  page.open(main, argument === undefined ? undefined : decodeURIComponent(argument));
  await refresh();
}

async function refresh() {
  clearTimeout(timer);
  const mine = ++turn;
  const asked = page;
  if (!known()) return askAccount();
  try {
    if (!asked.twin) health(await get("/v1/overview"));
    else if (!document.hidden) {
      const found = await get(asked.twin);
      if (mine !== turn) return;
      asked.show(found);
      if (asked === overview) health(found);
      else if (mine % 3 === 1) health(await get("/v1/overview"));
    }
    document.getElementById("fresh").textContent = asked.twin ? `as of ${new Date().toLocaleTimeString()}` : "";
  } catch (error) {
    if (error.status === 401) { logOut(); return askAccount(error.message); }
    if (error.status === 403) { main.replaceChildren(h("p", { class: "empty" }, error.message)); }
    document.getElementById("fresh").textContent = `no answer: ${error.message}`;
    if (!error.status) { const pill = document.getElementById("health"); pill.className = "pill bad"; pill.textContent = "no answer"; }
  }
  if (mine === turn) timer = setTimeout(refresh, REFRESH_MS);
}

function health(found) {
  const pill = document.getElementById("health");
  pill.className = "pill " + (found.ready ? "good" : "bad");
  pill.textContent = found.ready ? "ready" : `${found.problems.length} problem${found.problems.length === 1 ? "" : "s"}`;
  pill.title = found.problems.join("\n");
}

function askAccount(problem) {
  const dialog = document.getElementById("login");
  const error = dialog.querySelector(".error");
  error.hidden = !problem;
  error.textContent = problem ?? "";
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("[name=password]").focus();
}

document.querySelector("#login form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { user: name, password } = Object.fromEntries(new FormData(event.target));
  logIn(name, password);
  try {
    await get("/v1/sessions");
    keep(name);
    document.getElementById("login").close();
    document.getElementById("account").textContent = name;
    open();
  } catch (error) {
    logOut();
    askAccount(error.message);
  }
});
document.getElementById("login").addEventListener("cancel", (event) => event.preventDefault());
document.getElementById("leave").addEventListener("click", () => { logOut(); document.getElementById("account").textContent = ""; askAccount(); });
document.getElementById("theme").addEventListener("click", () => theme(root.dataset.theme === "dark" ? "light" : "dark"));

Object.entries(PAGES).forEach(([name, each], number) =>
  document.getElementById("tabs").append(h("a", { href: `#${name}`, title: `key ${number + 1}` }, each.title)));

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("login").open) return;
  if (event.target.matches("input, textarea, select")) { if (event.key === "Escape") event.target.blur(); return; }
  const names = Object.keys(PAGES);
  if (event.key >= "1" && event.key <= String(names.length)) location.hash = names[Number(event.key) - 1];
  else if (event.key === "t") document.getElementById("theme").click();
  else if (event.key === "/") { main.querySelector("input[type=search], textarea")?.focus(); event.preventDefault(); }
  else page?.key?.(event);
});
addEventListener("hashchange", open);
addEventListener("visibilitychange", () => document.hidden || refresh());
addEventListener("refresh-page", refresh);

theme(localStorage.getItem("millrace-theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
document.getElementById("account").textContent = user() ?? "";
open();
