// Talk: the entity's own room, in which the person talks with it alone.
import { entity, html, useEffect, useState } from "../core.js";
import { Alert } from "../parts.js";
import * as socket from "../socket.js";
import { Room, STYLE } from "../talk/room.js";

export default function Talk() {
  const [room, show] = useState(null);
  const [error, fail] = useState("");
  useEffect(() => {
    const ask = () => socket.isOpen() && socket.request("rooms").then((data) => (fail(""), show(data.rooms[0].id)), (problem) => fail(problem.message));
    ask();
    return socket.hear("open", ask);
  }, []);
  return html`<link rel="stylesheet" href=${STYLE} />
    <h1 tabindex="-1">Talk with ${entity}</h1>
    ${error && html`<${Alert}>${error}<//>`}
    ${room ? html`<${Room} key=${room} id=${room} />` : !error && html`<p class="faint" role="status">One moment …</p>`}`;
}
