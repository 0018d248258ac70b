// Search: people, facts, turns, records and anchors by some words, of any time or of one; results come while one types.
import { call, clock, go, href, html, useCall } from "../core.js";
import { Answer, Span, When, counted, hasEnded, useSchema } from "../parts.js";
import { hasAll, marked, wordsOf } from "../matches.js";
import { nameOf } from "../conversation.js";

const MOST = 8;
const NEAR = 3;
const LONG = 200; // characters of a result from which on it begins shortly before its first match
const LONGEST = 4_000;
const DAY_MS = 86_400_000;
const TIMES = [["", "any time", 0], ["week", "the last week", 7], ["month", "the last month", 30], ["year", "the last year", 365], ["between", "between two days", 0]];

const dayBefore = (days) => clock(new Date(Date.now() - days * DAY_MS)).slice(0, 10);

/** The day after a day, so that a time that ends with a day has it in it. */
const dayAfter = (day) => new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);

/** From when to when: `{since, until}`, both optional. */
export function boundsOf({ time = "", since = "", until = "" }) {
  if (time === "between") return { ...(since && { since }), ...(until && { until: dayAfter(until) }) };
  const days = TIMES.find(([id]) => id === time)?.[2];
  return days ? { since: dayBefore(days) } : {};
}

/** Ask everywhere at once: by names and words as they stand, and by what is near in meaning. */
async function search({ q, bounds }) {
  const isTimed = Boolean(bounds.since || bounds.until);
  const [recalled, named, said] = await Promise.all([
    call("recall", { query: q, limit: MOST, channels: ["nodes", "facts", "episodes", "anchors"], ...(isTimed && { filters: bounds }) }),
    isTimed ? { nodes: [] } : call("nodes_list", { query: q.slice(0, 200), limit: MOST }),
    call("turns_list", { query: wordsOf(q).slice(0, 20).join(" ").slice(0, 400), limit: MOST, ...bounds }),
  ]);
  return { recalled, named, said };
}

const unique = (lines) => [...new Map(lines.map((line) => [line.id, line])).values()];

/** What has all of the words; where nothing has, what is nearest. */
function chosen(lines, words, isNear) {
  const exact = unique(lines).filter((line) => hasAll(line.text, words));
  return exact.length ? { lines: exact.slice(0, MOST), isExact: true } : { lines: isNear ? unique(lines).slice(0, NEAR) : [], isExact: false };
}

/** The results by what they are, as lines `{id, text, address, more}`. */
function resultsOf({ recalled, named, said }, words, kinds) {
  const hits = (channel) => recalled.channels[channel]?.hits || [];
  const isNear = !recalled.notes?.some((note) => note.startsWith("nothing here is near"));
  const nodes = [
    ...named.nodes.map(({ id, name, kind, summary }) => ({ id, kind, text: summary ? `${name}: ${summary}` : name })),
    ...hits("nodes").map(({ id, text, kind }) => ({ id, kind, text })),
  ].map((node) => ({ ...node, more: html`<bdi>${node.kind}</bdi>`, address: kinds[node.kind] ? href("records", {}, node.kind, node.id) : href("item", {}, node.id) }));
  const turns = [
    ...said.turns.map(({ turn }) => ({ ...turn, text: turn.content })),
    ...hits("episodes"),
  ].map((turn) => ({
    id: turn.id, text: turn.text, address: href("item", {}, turn.id),
    more: html`<${When} at=${turn.occurred_at} precision=${turn.occurred_at_precision} time /> ${nameOf(turn.session || "") && html`<bdi>${nameOf(turn.session)}</bdi>`}`,
  }));
  const facts = hits("facts").map((fact) => ({ id: fact.id, text: fact.text, address: href("item", {}, fact.id), isEnded: hasEnded(fact), more: html`<${Span} of=${fact} />` }));
  const anchors = hits("anchors").map((hit) => ({ id: hit.id.split("#")[0], text: hit.title ? `${hit.title}: ${hit.text.replace(/^#+ .*\n+/, "")}` : hit.text, address: href("anchors", {}, hit.id.split("#")[0]) }));
  const isRecord = (node) => Boolean(kinds[node.kind]);
  return [
    ["people", "People, places and things", nodes.filter((node) => !isRecord(node))],
    ["facts", "Facts", facts],
    ["turns", "Turns", turns],
    ["records", "Records", nodes.filter(isRecord)],
    ["anchors", "Anchors", anchors],
  ].map(([id, title, lines]) => ({ id, title, ...chosen(lines, words, isNear) })).filter(({ lines }) => lines.length);
}

/** Where all of a kind of results are, by the same words. */
const ALL = {
  people: (q) => href("names", { words: q.slice(0, 200) }),
  turns: (q) => href("turns", { words: q.slice(0, 400) }),
  facts: (q) => href("ask", { q }),
};

function Results({ q, bounds }) {
  const words = wordsOf(q);
  const schema = useSchema();
  const of = useCall(search, { q, bounds }, { about: "search" });
  return html`<${Answer} of=${of}>${(answer) => {
    const groups = resultsOf(answer, words, schema?.kinds || {});
    const total = groups.reduce((sum, group) => sum + group.lines.length, 0);
    return html`<p class="faint" role="status">${total ? `${counted(total, "result")} shown` : "Nothing has these words or is near them."}</p>
      <div class="results">${groups.map((group) => html`<section key=${group.id} class="card" aria-label=${group.title}>
        <div class="row"><h2>${group.title}</h2>${!group.isExact && html`<span class="faint">nearest</span>`}${ALL[group.id] && html`<a href=${ALL[group.id](q)} aria-label=${`All: ${group.title}`}>all</a>`}</div>
        <ul class="lines">${group.lines.map((line) => html`<li key=${line.id} class=${line.isEnded ? "ended" : ""}>
          <a class="item said result" dir="auto" href=${line.address}>${marked(line.text.slice(0, LONGEST), words, LONG)}</a> ${line.more && html`<span class="faint">${line.more}</span>`}</li>`)}</ul>
      </section>`)}</div>`;
  }}<//>`;
}

function View({ query }) {
  const { q = "", time = "", since = "", until = "" } = query;
  const move = (changed) => go(href("search", { ...query, ...changed }), { replace: true });
  return html`<h1 tabindex="-1">Search</h1>
    <form class="row" onSubmit=${(event) => event.preventDefault()} role="search" aria-label="Of which time">
      <label>Of <select value=${time} onChange=${(event) => move({ time: event.target.value })}>${TIMES.map(([id, title]) => html`<option key=${id} value=${id}>${title}</option>`)}</select></label>
      ${time === "between" && html`<label>from <input type="date" name="since" value=${since} onChange=${(event) => move({ since: event.target.value })} /></label>
        <label>to <input type="date" name="until" value=${until} onChange=${(event) => move({ until: event.target.value })} /></label>`}
    </form>
    ${q.trim()
      ? html`<${Results} q=${q.trim()} bounds=${boundsOf(query)} />`
      : html`<p class="faint">Type in the box of the navigation; <kbd>/</kbd> goes there from everywhere.</p>`}`;
}

export default View;
