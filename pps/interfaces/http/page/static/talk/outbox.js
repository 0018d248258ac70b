// What was typed and is not yet on the server's disk: kept in this browser, sent in order, each once.
//
// The server keeps a message once by its id, so one whose answer was lost is sent again without harm. What is off the
// record stays in this tab alone.
import { entity } from "../core.js";
import * as socket from "../socket.js";

const KEPT = `pps outbox ${entity}`;
const listeners = new Set();
let isSending = false;
let messages = read();

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) || "[]");
  } catch {
    return [];
  }
}

function change(next) {
  messages = next;
  const kept = messages.filter((one) => !one.off_record);
  if (kept.length) localStorage.setItem(KEPT, JSON.stringify(kept));
  else localStorage.removeItem(KEPT);
  listeners.forEach((listener) => listener());
}

/** The messages of a room that are on their way: `{room, message, text, to, off_record, problem}`. */
export const outboxOf = (room) => messages.filter((one) => one.room === room);

/** Hear of every change of the outbox; returns what ends it. */
export function hearOutbox(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Put a message into the outbox, and send it as soon as the server is there. */
export function post(message) {
  change([...messages, message]);
  send();
}

/** Take a message out: it was refused, and its words are typed anew or dropped. */
export const takeBack = (id) => change(messages.filter((one) => one.message !== id));

async function send() {
  if (isSending) return;
  isSending = true;
  try {
    for (let next; (next = messages.find((one) => !one.problem)) && socket.isOpen(); ) {
      const { problem, ...fields } = next;
      try {
        await socket.request("say", fields);
        takeBack(next.message);
      } catch (refused) {
        if (!refused.status || refused.status >= 500) break; // lost, or not now: it is sent again
        change(messages.map((one) => (one.message === next.message ? { ...one, problem: refused.message } : one)));
      }
    }
  } finally {
    isSending = false;
  }
}

socket.hear("open", send);
setInterval(() => messages.some((one) => !one.problem) && send(), 2_000);
