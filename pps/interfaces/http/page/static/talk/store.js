// What a page knows of a room: its messages by id, and what goes on there. Every event may come twice and changes
// nothing the second time; words say where in their answer they stand.
import { useEffect, useState } from "../core.js";
import * as socket from "../socket.js";

/** Follow a room; `changed` is called after every event. Returns `{room, close, earlier}`. */
function follow(id, changed) {
  const room = { id, state: null, messages: new Map(), position: 0, answer: null, waiting: [], problem: null, refused: "", more: false };
  const goesOn = (event) => {
    for (const name of ["answer", "waiting", "problem"]) if (event[name] !== undefined) room[name] = event[name];
  };
  const upsert = (message) => {
    room.messages.set(message.id, message);
    if (room.answer?.id === message.id) room.answer = null;
  };
  const at = (event) => (room.position = Math.max(room.position, event.position || 0));
  const events = {
    room_state(event) {
      room.refused = "";
      if (event.since === 0) room.messages.clear();
      event.messages.forEach(upsert);
      const ids = new Set(event.ids);
      for (const known of room.messages.keys()) if (!ids.has(known)) room.messages.delete(known);
      room.more = event.ids.length > room.messages.size;
      room.state = event.state;
      goesOn(event);
      at(event);
    },
    message(event) {
      upsert(event.message);
      at(event);
    },
    message_gone(event) {
      room.messages.delete(event.id);
      at(event);
    },
    room(event) {
      room.state = event.state;
      at(event);
    },
    begins: goesOn,
    problem: goesOn,
    words(event) {
      if (room.answer?.id !== event.id) return;
      const { text } = room.answer;
      if (event.at > text.length) return socket.request("subscribe", { rooms: { [id]: room.position } }).catch(() => null);
      if (event.at + event.text.length > text.length) room.answer = { ...room.answer, text: text.slice(0, event.at) + event.text };
    },
    ended(event) {
      if (room.answer?.id === event.id) room.answer = null;
      room.problem = event.problem ? { entity: event.entity, text: event.problem } : null;
      room.waiting = room.waiting.filter((name) => name !== event.entity);
    },
    refused: ({ problem }) => (room.refused = problem.message),
  };
  const ends = Object.entries(events).map(([name, act]) => socket.hear(name, (event) => {
    if (event.room !== id) return;
    act(event);
    changed();
  }));
  ends.push(socket.followRoom(id, () => room.position));
  const earlier = async () => {
    const first = Math.min(...[...room.messages.values()].map((one) => one.place));
    const page = await socket.request("earlier", { room: id, before: first });
    page.messages.forEach(upsert);
    room.more = page.more;
    changed();
  };
  return { room, earlier, close: () => ends.forEach((end) => end()) };
}

/** The state of a room, drawn anew at every event, at most once a frame; null at first. */
export function useRoom(id) {
  const [, draw] = useState(0);
  const [followed, set] = useState(null);
  useEffect(() => {
    let due = 0;
    const mine = follow(id, () => (due ||= requestAnimationFrame(() => ((due = 0), draw((n) => n + 1)))));
    set(mine);
    return () => (cancelAnimationFrame(due), mine.close());
  }, [id]);
  return followed?.room.id === id ? followed : null;
}

/** The messages of a room in their order. */
export const inOrder = (room) => [...room.messages.values()].sort((a, b) => a.place - b.place);
