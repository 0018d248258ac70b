// The page's socket: one WebSocket for what is new in memories and for all that happens in rooms.
//
// It comes back by itself after it was lost, says again what it wants to hear of, with the positions that it knows, and
// so gets what it missed. What somebody waits for is asked again or refused then; what was said is kept in the outbox
// until the server has it on disk (talk/outbox.js).

/** How often a lost connection is tried again, at first and at most; milliseconds. */
const FIRST_WAIT = 250;
const LONGEST_WAIT = 10_000;
/** After how long without a word of the server (it sends beats) it counts as silent, and as away; milliseconds. */
const SILENT = 900;
const AWAY = 12_000;
/** How often that is looked at; milliseconds. */
const LOOK = 100;
/** How long an answer is waited for; milliseconds. */
const SLOW = 60_000;
const SESSION_ENDED = 4401;

const listeners = new Map(); // event's name → functions
const wanted = { entities: new Map(), rooms: new Map() }; // name → how many follow it; room → function that returns the position that is known
const waiting = new Map(); // request's id → { done, fail, due }
let given = null; // { key, state, ended, probe }
let connection = null;
let asked = 0;
let wait = FIRST_WAIT;
let shown = "";
let heardAt = 0;

/** An answer that is no result: problem details (RFC 9457), or no answer at all (status 0). */
export class SocketProblem extends Error {
  constructor(said) {
    super(said.detail || "the server does not answer");
    this.status = said.status || 0;
    this.field = said.field;
  }
}

/**
 * Open the socket and keep it open. `key` returns the session's half that this page keeps; `state` hears "live",
 * "silent" or "away"; `probe` tells whether the session goes on; `ended` is called once it does not.
 */
export function start(how) {
  given = how;
  setInterval(watch, LOOK);
  window.addEventListener("online", () => connection || open());
  window.addEventListener("offline", () => tell("away"));
  open();
}

/** Hear of an event by its name; returns what ends it. Of "open" whenever the socket has come back. */
export function hear(event, listener) {
  if (!listeners.has(event)) listeners.set(event, new Set());
  listeners.get(event).add(listener);
  return () => listeners.get(event).delete(listener);
}

/** Whether the socket is open. */
export const isOpen = () => connection?.readyState === WebSocket.OPEN;

/** Hear of an entity's memory from now on; returns what ends it, once nothing else follows that one. */
export function followEntity(name) {
  const followers = wanted.entities.get(name) || 0;
  wanted.entities.set(name, followers + 1);
  if (!followers && isOpen()) request("subscribe", { entities: [name] }).catch(() => null);
  return () => {
    const left = wanted.entities.get(name) - 1;
    if (left) return wanted.entities.set(name, left);
    wanted.entities.delete(name);
    if (isOpen()) request("unsubscribe", { entities: [name] }).catch(() => null);
  };
}

/** Hear of a room from now on; `position` returns the last one that is known. Returns what ends it. */
export function followRoom(room, position) {
  wanted.rooms.set(room, position);
  if (isOpen()) request("subscribe", { rooms: { [room]: position() } }).catch((problem) => emit("refused", { room, problem }));
  return () => {
    wanted.rooms.delete(room);
    if (isOpen()) request("unsubscribe", { rooms: [room] }).catch(() => null);
  };
}

/** Ask for something; returns its result, throws a SocketProblem. */
export function request(doing, fields = {}) {
  if (!isOpen()) return Promise.reject(new SocketProblem({}));
  const id = (asked += 1);
  return new Promise((done, fail) => {
    const due = setTimeout(() => (waiting.delete(id), fail(new SocketProblem({}))), SLOW);
    waiting.set(id, { done, fail, due });
    connection.send(JSON.stringify({ id, do: doing, ...fields }));
  });
}

const emit = (name, event) => listeners.get(name)?.forEach((listener) => listener(event));

function tell(state) {
  if (state === shown) return;
  shown = state;
  given.state(state);
}

function watch() {
  if (!isOpen()) return;
  const silence = Date.now() - heardAt;
  if (silence > AWAY) {
    tell("away");
    drop();
  } else tell(silence > SILENT ? "silent" : "live");
}

function open() {
  const address = new URL("socket", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  address.hash = "";
  const mine = new WebSocket(address, ["pps", `pps-key.${given.key() || "none"}`]);
  let wasOpen = false;
  connection = mine;
  mine.onopen = () => {
    wasOpen = true;
    heardAt = Date.now();
    wait = FIRST_WAIT;
    const rooms = Object.fromEntries([...wanted.rooms].map(([room, position]) => [room, position()]));
    const entities = [...wanted.entities.keys()];
    if (entities.length) request("subscribe", { entities }).catch(() => null);
    for (const [room, position] of Object.entries(rooms)) {
      request("subscribe", { rooms: { [room]: position } }).catch((problem) => emit("refused", { room, problem }));
    }
    tell("live");
    emit("open", {});
  };
  mine.onmessage = ({ data }) => {
    heardAt = Date.now();
    const event = JSON.parse(data);
    if (event.re === undefined) return emit(event.event, event);
    const one = waiting.get(event.re);
    waiting.delete(event.re);
    clearTimeout(one?.due);
    if (event.problem) one?.fail(new SocketProblem(event.problem));
    else one?.done(event.result);
  };
  mine.onclose = ({ code }) => {
    if (connection === mine) lost(code, wasOpen);
  };
}

/** Give a socket up that says nothing. */
function drop() {
  const old = connection;
  connection = null;
  old?.close();
  lost(0, true);
}

async function lost(code, wasOpen) {
  connection = null;
  for (const { fail, due } of waiting.values()) {
    clearTimeout(due);
    fail(new SocketProblem({}));
  }
  waiting.clear();
  tell("away");
  // A socket that was refused says nothing of why: a session that has ended is found out otherwise.
  if (code === SESSION_ENDED || (!wasOpen && (await given.probe()) === false)) return given.ended();
  setTimeout(() => connection || open(), wait);
  wait = Math.min(wait * 2, LONGEST_WAIT);
}
