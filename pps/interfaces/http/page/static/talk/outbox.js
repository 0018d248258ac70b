// What was typed and is not yet on the server's disk: kept in this browser, sent in order, each once.
//
// The server keeps a message once by its id, so one whose answer was lost is sent again without harm. Each message is
// kept by itself, so that several tabs lose nothing of each other's; each tab sends what any of them kept. What is off
// the record stays in its tab alone.
import { entity } from "../core.js";
import * as socket from "../socket.js";

const KEPT = `pps outbox ${entity || ""} `;
const listeners = new Set();
let offRecord = [];
let isSending = false;

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** All that is on its way, in the order in which it was typed. */
function waiting() {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(KEPT));
  const kept = names.map((name) => parsed(localStorage.getItem(name))).filter(Boolean);
  return [...kept, ...offRecord].sort((a, b) => a.at - b.at);
}

const tell = () => listeners.forEach((listener) => listener());

function keep(message) {
  if (message.off_record) offRecord = [...offRecord.filter((one) => one.message !== message.message), message];
  else localStorage.setItem(KEPT + message.message, JSON.stringify(message));
  tell();
}

/** The messages of a room that are on their way: `{room, message, text, to, off_record, at, problem}`. */
export const outboxOf = (room) => waiting().filter((one) => one.room === room);

/** Hear of every change of the outbox; returns what ends it. */
export function hearOutbox(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Put a message into the outbox, and send it as soon as the server is there. */
export function post(message) {
  keep({ ...message, at: performance.timeOrigin + performance.now() });
  send();
}

/** Take a message out: it was sent, or refused, and its words are typed anew or dropped. */
export function takeBack(id) {
  offRecord = offRecord.filter((one) => one.message !== id);
  localStorage.removeItem(KEPT + id);
  tell();
}

async function send() {
  if (isSending) return;
  isSending = true;
  try {
    for (let next; (next = waiting().find((one) => !one.problem)) && socket.isOpen(); ) {
      const { problem, at, ...fields } = next;
      try {
        await socket.request("say", fields);
        takeBack(next.message);
      } catch (refused) {
        if (!refused.status || refused.status >= 500) break; // lost, or not now: it is sent again
        keep({ ...next, problem: refused.message });
      }
    }
  } finally {
    isSending = false;
  }
}

socket.hear("open", send);
window.addEventListener("storage", tell); // another tab's
setInterval(() => waiting().some((one) => !one.problem) && send(), 2_000);
