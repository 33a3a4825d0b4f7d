// Requests with the account of this page. The browser's own store of passwords is left out, so that no other site can use it.
let header = sessionStorage.getItem("millrace-account");

export class Refused extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export async function ask(path, { method = "GET", body } = {}) {
  const headers = header ? { Authorization: header } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, credentials: "omit", body: body === undefined ? undefined : JSON.stringify(body) });
  const found = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, found.error?.message ?? answer.statusText, found.error?.code);
  return found;
}

// Server-sent events of a request, until `signal` says that they are not wanted any more.
export async function listen(path, body, signal, heard) {
  const headers = { Authorization: header, "Content-Type": "application/json" };
  const answer = await fetch(path, { method: "POST", headers, credentials: "omit", body: JSON.stringify(body), signal });
  if (!answer.ok) {
    const found = await answer.json();
    throw new Refused(answer.status, found.error?.message ?? answer.statusText, found.error?.code);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const fields = Object.fromEntries(text.slice(0, end).split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      if (fields.event) heard(fields.event, JSON.parse(fields.data));
    }
  }
}

export const get = (path) => ask(path);
export const post = (path, body) => ask(path, { method: "POST", body });

export function logIn(user, password) {
  const text = new TextEncoder().encode(`${user}:${password}`);
  header = "Basic " + btoa(String.fromCharCode(...text));
}

export function keep(user) {
  sessionStorage.setItem("millrace-account", header);
  sessionStorage.setItem("millrace-user", user);
}

export function logOut() {
  header = null;
  sessionStorage.removeItem("millrace-account");
  sessionStorage.removeItem("millrace-user");
}

export const user = () => sessionStorage.getItem("millrace-user");
export const known = () => header !== null;

// What is asked for over and over by the same page: the path of its JSON twin, too.
export function database() {
  return localStorage.getItem("millrace-database");
}

export function useDatabase(name) {
  localStorage.setItem("millrace-database", name);
}
