// Pieces that views share: icons, times, ids, states, and what an item looks like in a line.
import { acts, call, callOf, clock, entity, go, href, html, useCall, useEffect, useLayoutEffect, useMemo, useRef, useState, zoneName } from "./core.js";
import { Said } from "./markdown.js";

const PATHS = {
  home: "M4 11l8-7 8 7M6 10v10h12V10M10 20v-6h4v6",
  ask: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14m5 12 5 5",
  graph: "M6 4a2 2 0 1 0 0 4 2 2 0 0 0 0-4m13 3a2 2 0 1 0 0 4 2 2 0 0 0 0-4M9 16a2 2 0 1 0 0 4 2 2 0 0 0 0-4M8 6.5l9 2M6.6 8l2 8M17.5 10.5 10.5 17",
  time: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18m0 4v5l3 2",
  names: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4 21c0-5 4-7 8-7s8 2 8 7",
  turns: "M4 5h16v11H9l-5 4z",
  talk: "M3 5h13v9H8l-5 4zM19 9h2v12l-4-4h-7v-1",
  jobs: "M4 6h10M4 12h16M4 18h7",
  health: "M3 12h4l3-7 4 14 3-7h4",
  records: "M4 5h16v14H4zM4 10h16M10 10v9",
  topics: "M8 8a4 4 0 1 0 0 .01M17 16a3 3 0 1 0 0 .01M16 6a2 2 0 1 0 0 .01",
  squad: "M9 11a3 3 0 1 0 0-.01M17 10a2 2 0 1 0 0-.01M3 20c0-4 3-6 6-6s6 2 6 6M15 14c4-1 6 2 6 5",
  forgotten: "M5 7h14M10 4h4M7 7l1 13h8l1-13M10 11v5M14 11v5",
  anchors: "M12 6a2 2 0 1 0 0-.01M12 8v12M5 13c0 4 3 7 7 7s7-3 7-7M8 11h8",
  injected: "M12 3v11m0 0 4-4m-4 4-4-4M4 18v3h16v-3",
  changes: "M4 8h11a5 5 0 0 1 0 10H9M4 8l4-4M4 8l4 4",
  isolation: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6z",
};

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
  <path d=${PATHS[name] || "M12 12h.01"} />
</svg>`;

export const Alert = ({ children }) => html`<p class="alert" role="alert">${children}</p>`;

/** What stands where there is nothing yet: why, and what to do. */
export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

/** A view's answer: its problem, that it is asked for, or what is made of it. */
export function Answer({ of, children }) {
  return html`
    ${of.error && html`<${Alert}>${of.error.message}<//>`}
    ${of.busy && !of.data && html`<p class="faint" role="status">One moment …</p>`}
    ${of.data && children(of.data)}
  `;
}

const WIDTHS = { day: 10, month: 7, year: 4 };

/** A time as the person's calendar and clock have it: a date is that date in every zone. */
export const told_time = (at, precision) => (precision ? at.slice(0, WIDTHS[precision]) : clock(new Date(at)));

/** The day of an instant on the person's clock. */
export const clockDay = (at) => clock(new Date(at)).slice(0, 10);

/** A time as milliseconds on the wall clock, as if that were UTC: what dates compare with. */
export const wall = (at, precision) => Date.parse(precision ? at : clock(new Date(at)).replace(" ", "T") + "Z");

/** A time: the day on the person's clock (with `time` the minute too), the whole of it on hover. */
export const When = ({ at, precision, none = "", time = false }) => {
  if (!at) return none;
  const said = told_time(at, precision);
  return html`<time datetime=${precision ? said : at} title=${precision ? said : `${said} ${zoneName()}`}>${said.slice(0, time ? 16 : 10)}</time>`;
};

/** Numbers of an answer, each under its name. */
export const Figures = ({ of, names }) => html`<dl class="figures">
  ${names.map((name) => html`<div key=${name}><dt>${name.replaceAll("_", " ")}</dt><dd>${of[name].toLocaleString("en")}</dd></div>`)}
</dl>`;

/** A job's state, where it is worth saying. */
export const State = ({ of }) => of !== "done" && html`<span class=${`tag ${of}`}>${of}</span>`;

/** Whether a fact held at no time: it ends where it begins, or, where its beginning is not known, before everything. */
export const wasNeverTrue = (of) => Boolean(of.invalid_at) && (of.valid_at
  ? wall(of.invalid_at, of.invalid_at_precision) <= wall(of.valid_at, of.valid_at_precision)
  : of.invalid_at < "0002");

/** Since when and until when a fact holds. */
export const Span = ({ of }) => wasNeverTrue(of) ? html`<span class="span">at no time</span>` : html`<span class="span">
  ${of.valid_at ? html`<${When} at=${of.valid_at} precision=${of.valid_at_precision} />` : "…"} – ${of.invalid_at ? html`<${When} at=${of.invalid_at} precision=${of.invalid_at_precision} />` : "now"}
</span>`;

/** A link to an item by its id. */
export const Item = ({ id, children }) => html`<a class="item" dir="auto" href=${href("item", {}, id)}>${children}</a>`;

/** A link to an item by its id, as that; to an anchor by its slug, which a passage's id begins with. */
export const Id = ({ of }) => /^[0-9a-f]{8}(-[0-9a-f-]*)?$/.test(of)
  ? html`<a class="id" href=${href("item", {}, of)}>${of.slice(0, 8)}</a>`
  : html`<a class="id" dir="auto" href=${href("anchors", {}, of.split("#")[0])}>${of.split("#")[0]}</a>`;

export const counted = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** An input that begins with a value; what is typed stays when the page is drawn anew because something came. */
export function Typed({ value, ...given }) {
  const input = useRef(null);
  useLayoutEffect(() => {
    input.current.value = value;
  }, [value]);
  return html`<input ref=${input} dir="auto" ...${given} />`;
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** A value of a field as text: a list line by line, a map as its names with their values, an instant on the clock. */
export const told = (value) =>
  typeof value === "string" && INSTANT.test(value) ? clock(new Date(value)).slice(0, 16)
    : Array.isArray(value) ? value.map(told).join("\n")
    : value && typeof value === "object" ? Object.entries(value).map(([name, one]) => `${name} ${told(one)}`).join(", ")
      : String(value);

/** Whether a fact has ended at a moment (milliseconds on the wall clock, as `wall` returns them). */
export const hasEnded = (of, at = wall(new Date().toISOString())) =>
  of.invalid_at ? wall(of.invalid_at, of.invalid_at_precision) <= at : Boolean(of.expired_at);

/** What took the place of a fact or turn: since when, and what it says. */
export const SupersededBy = ({ of }) => of.superseded_by && html`<span class="why superseded">
  ${of.superseded_by.sure ? "Superseded" : "Possibly outdated since"} <${When} at=${of.superseded_by.at} />:${" "}
  <${Item} id=${of.superseded_by.id}>${of.superseded_by.text}<//>
</span>`;

/** A fact as a line: its sentence, its time; one that has ended at a moment, or by now, is struck. */
export const FactLine = ({ of, at }) => html`<li class=${hasEnded(of, at) ? "ended" : ""}>
  <a class="item said" dir="auto" href=${href("item", {}, of.id)}>${of.text || `${of.subject_name} ${of.relation} ${of.object_name}`}</a> <${Span} of=${of} /> <${SupersededBy} of=${of} />
</li>`;

/** Ask an operation for its first pages: `{pages, next}`, where `next` asks for the page after them. */
async function firstPages(operation, given, after, count) {
  const pages = [];
  let next = {};
  while (next && pages.length < count) {
    const page = await call(operation, { ...given, ...next });
    pages.push(page);
    next = after(page, pages);
  }
  return { pages, next };
}

const afterCursor = ({ next_cursor: cursor }) => cursor && { cursor };

/**
 * Ask an operation page by page: `{first, pages, more}`, where `first` is the first page's answer, as of `useCall`, and
 * `more` shows the next page; undefined on the last. All pages that are shown are asked for again when the memory
 * changes, so that none is missing between two. `after(page, pages)` returns what asks for the page after one.
 */
export function usePages(operation, given, after = afterCursor) {
  const about = JSON.stringify(given);
  const [shown, show] = useState({ about, count: 1 });
  const count = shown.about === about ? shown.count : 1;
  const ask = useMemo(() => (asking) => firstPages(operation, asking.given, after, asking.count), [operation]);
  const of = useCall(ask, given && { given, count }, { live: true, about });
  const more = of.data?.next ? () => show({ about, count: count + 1 }) : undefined;
  return { first: { ...of, data: of.data?.pages[0] }, pages: of.data?.pages || [], more };
}

/** The button that shows the next page; nothing on the last. */
export const More = ({ of, what }) => of.more && html`<p><button class="plain" disabled=${of.first.busy} onClick=${of.more}>
  ${of.first.busy ? "One moment …" : `Show more ${what}`}</button></p>`;

/** The facts of a node, or those that a condition of `timeline` lets through. */
export function Facts({ about, limit = 50, as_of = undefined }) {
  const of = usePages("timeline", { id: about, limit, as_of });
  const facts = of.pages.flatMap((page) => page.facts);
  return html`<${Answer} of=${of.first}>
    ${() => html`<h2>Facts</h2>
      ${!facts.length && html`<p class="faint">None.</p>`}
      <ul class="lines facts">${facts.map((one) => html`<${FactLine} key=${one.id} of=${one} />`)}</ul>
      <${More} of=${of} what="facts" />`}
  <//>`;
}

/** What kinds there are: `kinds` by name, life cycles by name, packs; undefined until it is known. */
export function useSchema() {
  const { data } = useCall("schema_inventory", {});
  return useMemo(() => data && {
    ...data,
    kinds: Object.fromEntries(data.kinds.map((one) => [one.name, one])),
    cycles: Object.fromEntries(data.lifecycles.map((one) => [one.name, one])),
  }, [data]);
}

const POLL_MS = 15_000;
const MOST_COUNTED = 200;

/** What waits for a member: `{inbox, approvals}`, both 0 for who is none; what others do comes with no news, so it is polled. */
export function useWaiting(schema) {
  const of = useCall(countWaiting, isMember(schema) ? {} : null, { live: true });
  useEffect(() => {
    const poll = setInterval(() => document.hidden || of.again(), POLL_MS);
    return () => clearInterval(poll);
  }, []);
  return of.data || { inbox: 0, approvals: 0 };
}

async function countWaiting() {
  const [{ deliveries }, { pending }, { me, members }] = await Promise.all([
    call("squad_inbox", { limit: MOST_COUNTED }), call("proposal_pending"), call("squad_pool", { limit: 1 }),
  ]);
  const reviews = members.some((member) => member.id === me && member.reviews);
  return { inbox: deliveries.length, approvals: reviews ? pending.filter((proposal) => proposal.proposer !== me).length : 0 };
}

/** How much waits, beside a name; nothing where nothing does. */
export const Badge = ({ count }) => count > 0 && html`<span class="badge">${count < MOST_COUNTED ? count : `${MOST_COUNTED}+`}<span class="unseen"> waiting</span></span>`;

/** Who is a member: its memory has the squad's pack. One that had it once is told that it is none any more. */
export const isMember = (schema) => Boolean(schema?.packs.squad);

const WORDS = 600;

/** The words of two texts, in order, as `[sign, words]`: "-" was, "+" is, "" both. */
function compared(before, after) {
  const [a, b] = [before, after].map((text) => text.split(/(?<=\s)/));
  if (a.length > WORDS || b.length > WORDS) return [["-", before], ["+", after]];
  const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length; i--; ) {
    for (let j = b.length; j--; ) {
      longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const found = [];
  const say = (sign, word) => (found.at(-1)?.[0] === sign ? (found.at(-1)[1] += word) : found.push([sign, word]));
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) [i, j] = (say("", a[i]), [i + 1, j + 1]);
    else if (j === b.length || (i < a.length && longest[i + 1][j] >= longest[i][j + 1])) say("-", a[i++]);
    else say("+", b[j++]);
  }
  return found;
}

/** What stands, and what would take its place, word by word. */
export function Diff({ before, after }) {
  const found = useMemo(() => compared(before, after), [before, after]);
  return html`<p class="said diff" dir="auto">${found.map(([sign, words], at) =>
    sign === "-" ? html`<del key=${at}>${words}</del>` : sign === "+" ? html`<ins key=${at}>${words}</ins>` : words)}</p>`;
}

/** A turn as it was said. */
export const TurnCard = ({ of, plain = false }) => html`<article class="card turn">
  <p class="faint"><bdi><b>${of.actor || of.role}</b></bdi> · <${When} at=${of.occurred_at} precision=${of.occurred_at_precision} /> · <bdi>${of.source}</bdi>${of.session && html` · <bdi>${of.session}</bdi>`} · <${Id} of=${of.id} /></p>
  <${Said} text=${of.content} plain=${plain} />
  <${SupersededBy} of=${of} />
</article>`;

/** What a text was, newest first. */
export function Versions({ id }) {
  const of = useCall("history", { id, with_content: false }, { live: true });
  return html`<${Answer} of=${of}>${({ versions }) => versions.length > 1 && html`<h2>What it was</h2>
    <ul class="plain">${versions.map((one) => html`<li key=${one.version} class="card">
      <p class="faint">Version ${one.version}, ${one.change} · <${When} at=${one.at} />${one.actor && html` · <bdi>${one.actor}</bdi>`}</p>
      ${one.diff && html`<pre class="diff" dir="auto" tabindex="0">${one.diff.split("\n").map((line, at) => html`<span key=${at} class=${{ "+": "plus", "-": "minus" }[line[0]] || ""}>${`${line}\n`}</span>`)}</pre>`}
    </li>`)}</ul>`}<//>`;
}

const KINDS = [["turns", "turn"], ["facts", "fact"], ["nodes", "node"], ["anchors", "anchor"], ["copies", "copy", "copies in the pool"]];

/** How many of each kind there are, as "2 turns, 1 fact". */
const kindsCounted = (of, without = []) => KINDS
  .map(([name, one, many]) => [without.includes(name) ? 0 : Array.isArray(of[name]) ? of[name].length : of[name] || 0, one, many])
  .filter(([number]) => number).map(([number, one, many]) => counted(number, one, many)).join(", ");

/** A line of an item in words, which leads to it. */
const ShownItem = ({ of }) => html`<li><span class="tag">${of.kind}</span> ${of.kind === "copy"
  ? html`<span class="said" dir="auto">${of.text}</span>`
  : html`<a class="item said" dir="auto" href=${of.kind === "anchor" ? href("anchors", {}, of.id) : href("item", {}, of.id)}>${of.text}</a>`}</li>`;

export const ShownItems = ({ of, total }) => html`<ul class="lines">
  ${of.map((one) => html`<${ShownItem} key=${one.id} of=${one} />`)}
  ${total > of.length && html`<li class="faint">and ${(total - of.length).toLocaleString("en")} more</li>`}
</ul>`;

/** What still mentions something that was forgotten, in words. */
export const Mentions = ({ of }) => {
  const total = KINDS.reduce((sum, [name]) => sum + of[name], 0);
  const called = of.names.length ? of.names.join(", ") : "it";
  return total
    ? html`<p>${kindsCounted(of)} still ${total === 1 ? "mentions" : "mention"} ${called}, and can be found:</p><${ShownItems} of=${of.items} total=${total} />`
    : html`<p class="faint">Nothing mentions ${called} any more.</p>`;
};

/** What mentions what would go, kind by kind, each to be taken along or left. */
const Along = ({ of, along, choose }) => html`<fieldset class="card">
  <legend>Still mentioned, and left unless you take it along</legend>
  <p class="faint">What stays can be found, and says ${of.names.length ? of.names.join(", ") : "the same"} as before.</p>
  ${KINDS.filter(([name]) => of[name]).map(([name, one, many]) => html`<div key=${name}>
    <label class="check"><input type="checkbox" name="along" value=${name} checked=${along.includes(name)}
      onChange=${(event) => choose(event.target.checked ? [...along, name] : along.filter((kind) => kind !== name))} />
      ${" "}Take ${counted(of[name], one, many)} along</label>
    <${ShownItems} of=${of.items.filter((item) => item.kind === one)} total=${of[name]} />
  </div>`)}
</fieldset>`;

/** What would go is shown first; only then can it be done, for good or so that it can be had back. */
export function Forget({ id, what, heading = true, onForgotten = (soft) => go(soft ? "#/forgotten" : "#/home") }) {
  const [plan, show] = useState(null);
  const [mentions, mention] = useState(null);
  const [along, choose] = useState([]);
  const [error, fail] = useState("");
  const ask = (how, then) => call("forget", { ids: [id], along, ...how }).then((data) => (fail(""), then(data)), (problem) => fail(problem.message));
  const look = () => ask({ dry_run: true, along: [] }, (data) => (mention(data.mentions), choose([]), show(data)));
  const take = (kinds) => {
    choose(kinds);
    ask({ dry_run: true, along: kinds }, show);
  };
  const submit = (event) => {
    event.preventDefault();
    const soft = event.submitter.value === "soft";
    const reason = new FormData(event.target).get("reason");
    ask({ dry_run: false, soft, ...(soft && { reason }) }, (data) => {
      acts.tell({
        title: `${soft ? "Forgotten" : "Erased for good"}: ${kindsCounted(data)}.`,
        mentions: data.mentions,
        undo: soft && { operation: "undo", given: { id: data.restorable_as } },
      });
      onForgotten(soft);
    });
  };
  return html`<section aria-label="Forget">
    ${heading && html`<h2 id="forget">Forget</h2>`}
    <p class="faint">For what must not be kept. What merely changed is corrected instead: then it is known what held before.</p>
    ${error && html`<${Alert}>${error}<//>`}
    ${!plan && html`<button class="plain" onClick=${look}>Show what would go</button>`}
    ${plan && html`<form class="card form" aria-label="What would go" onSubmit=${submit}>
      <h3>This would go: ${kindsCounted(plan) || "nothing more"}</h3>
      <${ShownItems} of=${plan.items} total=${plan.turns.length + plan.facts.length + plan.nodes.length + plan.anchors.length} />
      ${plan.facts_kept.length > 0 && html`<p class="faint">${counted(plan.facts_kept.length, "fact")} ${plan.facts_kept.length === 1 ? "stays" : "stay"}: other turns say the same.</p>`}
      ${mentions && KINDS.some(([name]) => mentions[name]) && html`<${Along} of=${mentions} along=${along} choose=${take} />`}
      ${mentions && !KINDS.some(([name]) => mentions[name]) && html`<p class="faint">Nothing else mentions it.</p>`}
      <label>Why <input name="reason" maxlength="500" placeholder="not needed" /></label>
      <p class="row"><button value="soft">Forget, with 30 days to restore it</button>
        <button class="danger" value="">Forget this ${what} for good</button>
        <button class="plain" type="button" onClick=${() => show(null)}>Keep it</button></p>
    </form>`}
  </section>`;
}

/** What was just done: in words, with what still mentions it, and the way to undo it. */
export function JustDone() {
  const [act, show] = useState(null);
  const [error, fail] = useState("");
  useEffect(() => acts.hear((done) => (fail(""), show(done))), []);
  if (!act) return null;
  const undo = () => {
    show({ ...act, busy: true });
    const { of = entity, operation, given, ask = () => callOf(of, operation, given) } = act.undo;
    ask().then(
      (data) => acts.tell({
        title: "Undone: it is as it was.", undone: data.id, item: entity && data.item, kind: data.kind,
        undo: data.redo && { of, operation: "undo", given: { id: data.redo }, name: "Do it again" },
      }),
      (problem) => (show({ ...act, busy: false }), fail(problem.message)),
    );
  };
  return html`<section class="card done" aria-label="Just done">
    <div class="row"><p role="status"><b>${act.title}</b></p>
      ${act.item && html`<a href=${act.kind === "anchor" ? href("anchors", {}, act.item) : href("item", {}, act.item)}>Open it</a>`}
      ${act.undo && html`<button class="plain" disabled=${act.busy} onClick=${undo}>${act.undo.name || "Undo"}</button>`}
      <button class="quiet" onClick=${() => show(null)}>Close</button></div>
    ${error && html`<${Alert}>${error}<//>`}
    ${act.mentions && html`<${Mentions} of=${act.mentions} />`}
  </section>`;
}
