// What every view stands on: preact and htm, the address, the session, the operations, and what is new.
import htm from "./vendor/htm.js";
import * as socket from "./socket.js";

export const { render } = globalThis.preact;
export const { useEffect, useLayoutEffect, useMemo, useRef, useState } = globalThis.preactHooks;
export const html = htm.bind(globalThis.preact.h);

// No text becomes HTML. The policy of the page demands a policy for it; this one lets nothing but nothing through.
globalThis.trustedTypes?.createPolicy("default", { createHTML: () => "" });

/** The time zone of the person whose memory this is, as answers name it. */
let zone = "UTC";

/** A moment's date and time on the person's clock, as `2026-03-10 23:30:05`. */
export function clock(moment) {
  const parts = (timeZone) =>
    Object.fromEntries(
      new Intl.DateTimeFormat("en", {
        timeZone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
      }).formatToParts(moment).map((one) => [one.type, one.value]),
    );
  let of;
  try {
    of = parts(zone);
  } catch {
    of = parts("UTC"); // a zone that this browser does not know
  }
  return `${of.year.padStart(4, "0")}-${of.month}-${of.day} ${of.hour}:${of.minute}:${of.second}`;
}
export const zoneName = () => zone;

export const entity = location.pathname.split("/")[2];
const KEPT = `pps page ${entity}`;

/** An answer that is no result: problem details (RFC 9457), or no answer at all (status 0). */
export class Problem extends Error {
  constructor(said) {
    super(said.detail || "the server does not answer");
    this.status = said.status || 0;
    this.field = said.field;
  }
}

/** How long an answer is waited for; milliseconds. */
const SLOW = 30_000;

/** What is said of a server that takes what is asked and does not answer. */
export const hangs = () => new Problem({
  detail: `The server has not answered for ${SLOW / 1000} seconds. It may be busy, or hang: try again, or look with pps doctor.`,
});

/** The result of a promise, or a Problem when there is none in time. */
export const inTime = (result) => {
  let due = 0;
  const late = new Promise((_, fail) => (due = setTimeout(() => fail(hangs()), SLOW)));
  return Promise.race([result, late]).finally(() => clearTimeout(due));
};

async function asked(path, given, { accept = "application/json", signal = AbortSignal.timeout(SLOW) } = {}) {
  const headers = { "PPS-Page": localStorage.getItem(KEPT) || "", "Content-Type": "application/json", Accept: accept };
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(given), credentials: "same-origin", signal }).catch((error) => {
    const isSlow = error.name === "TimeoutError";
    throw isSlow ? hangs() : new Problem({});
  });
  zone = answer.headers.get("PPS-Time-Zone") || zone;
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({ status: answer.status, detail: answer.statusText }));
  if (said.status === 401) ended.tell(said.detail);
  throw new Problem(said);
}

/** Ask an operation of the table, as `POST /v1/{operation}` does; throws a Problem. */
export const call = async (operation, given = {}) => (await asked(`v1/${operation}`, given)).json();

const early = new Map(); // an operation and what it is given → its answer, which is waited for

const keyOf = (operation, given) => `${operation} ${JSON.stringify(given)}`;

/** Ask an operation before the view that shows it is there; the first `useCall` of the same takes the answer, if it is soon. */
export function callEarly(operation, given = {}) {
  const key = keyOf(operation, given);
  const answer = call(operation, given);
  answer.catch(() => null); // who takes it is told
  early.set(key, answer);
  setTimeout(() => early.delete(key), SLOW);
}

/** Ask an operation, unless that was done early. */
function callOnce(operation, given) {
  const key = keyOf(operation, given);
  const answer = early.get(key) || call(operation, given);
  early.delete(key);
  return answer;
}

/** Ask an operation of an entity; on the owner's page of any, on an entity's page of that one; throws a Problem. */
export const callOf = async (name, operation, given = {}) => (await asked(entity ? `v1/${operation}` : `${name}/v1/${operation}`, given)).json();

/** Get a link that opens an entity's page from the owner's; throws a Problem. */
export const linkTo = async (name) => `../page/${name}/#open=${(await (await asked("open", { name })).json()).link}`;

/** Which features are on, and the views that some of them give as data; throws a Problem. */
export async function features() {
  const headers = { "PPS-Page": localStorage.getItem(KEPT) || "" };
  const answer = await fetch("features", { headers, credentials: "same-origin" }).catch(() => { throw new Problem({}); });
  const said = await answer.json().catch(() => ({ status: answer.status, detail: answer.statusText }));
  if (!answer.ok) throw new Problem(said);
  return said;
}

/** Ask a long operation; `heard` is told `{what, done, total}` again and again. Returns its result; throws a Problem. */
export async function callLong(operation, given, heard) {
  for await (const line of pieces(await asked(`v1/${operation}`, given, { accept: "application/x-ndjson", signal: null }), "\n")) {
    const said = JSON.parse(line);
    if (said.problem) throw new Problem(said.problem);
    if (said.result) return said.result;
    heard(said);
  }
  throw new Problem({});
}

/** Yield what an answer streams, piece by piece between marks. */
async function* pieces(answer, mark) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", got; !(got = await reader.read()).done; ) {
    const parts = (rest + got.value).split(mark);
    rest = parts.pop();
    yield* parts;
  }
}

/** Open a session with a link's secret; the other half of its token stays in this browser, for this origin alone. */
export async function open(link) {
  localStorage.setItem(KEPT, await (await asked("session", { link })).text());
}

export async function leave() {
  await asked("session", { end: true });
  localStorage.removeItem(KEPT);
  ended.tell("You have left this page.");
}

/** Whoever wants to hear of something. */
const told = () => {
  const heard = new Set();
  return { hear: (one) => (heard.add(one), () => heard.delete(one)), tell: (what) => heard.forEach((one) => one(what)) };
};
export const ended = told();
export const news = told();

/**
 * What somebody just did on the page: `{title, mentions, undo}`; the frame shows it. `undo` is `{operation, given}`, with
 * `of` for another entity than the page's, or `{ask}`, which returns the promise of its result.
 */
export const acts = told();

/** Open the page's socket and listen for what is new; `state` hears "live", "working", "silent" or "away". */
export function listen(state) {
  let isPending = false;
  let shown = "away";
  const show = (now = shown) => {
    shown = now;
    state(shown === "live" && isPending ? "working" : shown);
  };
  const probe = () => fetch("features", { headers: { "PPS-Page": localStorage.getItem(KEPT) || "" }, credentials: "same-origin" })
    .then((answer) => answer.status !== 401, () => true);
  socket.hear("changed", (event) => {
    if (event.entity !== entity) return;
    isPending = event.pending;
    show();
    news.tell({ version: event.position, pending: event.pending });
  });
  if (entity) socket.followEntity(entity);
  socket.start({
    key: () => localStorage.getItem(KEPT),
    state: show,
    ended: () => ended.tell("This page's session has ended."),
    probe,
  });
}

/** Ask before a form is left in which something was typed that was not sent. */
export function askBeforeLeaving() {
  let form = null;
  let here = location.hash;
  const isTyped = () => Boolean(form?.isConnected);
  document.addEventListener("input", (event) => {
    form = event.target.closest("form:not([role=search], .asking)") || form;
  });
  document.addEventListener("submit", () => (form = null), true);
  window.addEventListener("hashchange", (event) => {
    if (location.hash !== here && isTyped() && !confirm("Leave without keeping what you typed?")) {
      event.stopImmediatePropagation();
      history.pushState(null, "", here);
      return;
    }
    form = null;
    here = location.hash;
  });
  window.addEventListener("beforeunload", (event) => isTyped() && event.preventDefault());
}

/**
 * Ask an operation for a view: `{data, error, busy, again}`. It asks when what is given changes, and with `live` when
 * the memory does; the old answer stands until the new one is there. Nothing is asked while `given` is null. In place
 * of an operation's name a function may stand that asks several. `about` tells whether an old answer may stand beside
 * an error: it does while `about` (what is given, if there is none) is the same.
 */
export function useCall(operation, given, { live = false, about = JSON.stringify(given) } = {}) {
  const ask = typeof operation === "function" ? operation : (what) => callOnce(operation, what);
  const [state, set] = useState({ busy: true });
  const [turn, again] = useState(0);
  const key = JSON.stringify(given);
  useEffect(() => {
    if (given === null) return set({});
    let wanted = true;
    set((old) => ({ ...old, busy: true }));
    ask(given).then(
      (data) => wanted && set({ data, about }),
      (error) => wanted && set((old) => ({ data: old.about === about ? old.data : undefined, about, error })),
    );
    return () => (wanted = false);
  }, [operation, key, turn]);
  useEffect(() => {
    if (!live) return undefined;
    let due = 0;
    const stop = news.hear(() => (due ||= setTimeout(() => ((due = 0), again((n) => n + 1)), 400)));
    return () => (clearTimeout(due), stop());
  }, [live]);
  return { ...state, again: () => again((n) => n + 1) };
}

/** The address within the page: `#/view/part?name=value`. */
export function place() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").map(decodeURIComponent);
  return { view, parts, query: Object.fromEntries(new URLSearchParams(search)) };
}

/** The address of a view; what is empty is left out. */
export function href(view, query = {}, ...parts) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(kept).toString();
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

/** Go to an address; `replace` makes no step to come back by. */
export function go(address, { replace = false } = {}) {
  if (!replace) location.hash = address;
  else {
    history.replaceState(null, "", address);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  }
}
