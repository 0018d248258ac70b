// A conversation by a name that a person can read, and the link to it.
import { html, href } from "./core.js";
import { When, counted } from "./parts.js";

const IS_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{16,}$/i;

/** The name of a conversation; one that is only an id has none. */
export const nameOf = (session) => (IS_ID.test(session) ? "" : session);

/** A conversation of a list: its name or day, how long it is, and when it was last spoken in. */
export const Conversation = ({ of }) => html`<a class="item" dir="auto" href=${href("turns", { session: of.session })}>${nameOf(of.session) || html`Conversation of <${When} at=${of.last_at} />`}</a>
  ${" "}<span class="faint">${counted(of.turns, "turn")}, <${When} at=${of.last_at} time /></span>`;
