// A person, place, project or thing as a profile: what holds now by topic, what held before, turns, records, anchors.
// A fact is corrected and forgotten where it stands, and two nodes are made one; no id is shown.
import { href, html, useCall, useState } from "./core.js";
import { Answer, FactLine, Forget, Item, More, Span, SupersededBy, told, usePages, useSchema, hasEnded } from "./parts.js";
import { Correct, StillSaid } from "./correct.js";
import { byTopic } from "./fact_topics.js";
import { Said } from "./markdown.js";
import { MergePlan } from "./merge.js";
import { TurnOfTalk } from "./conversation.js";

const FACTS_A_PAGE = 200;
const TURNS_A_PAGE = 10;
const ANCHORS = 20;
const NAMES = 8;

/** A fact of a profile, with what can be done about it: each opens below the fact and closes again. */
function ProfileFact({ of }) {
  const [open, show] = useState("");
  const [corrected, correct] = useState(null);
  const toggle = (what) => show(open === what ? "" : what);
  const button = (what, title) => html`<button class="quiet" aria-expanded=${open === what} aria-label=${`${title}: ${of.text}`} onClick=${() => toggle(what)}>${title}</button>`;
  return html`<li class=${hasEnded(of) ? "ended" : ""}>
    <div class="profile-fact"><span><a class="item said" dir="auto" href=${href("item", {}, of.id)}>${of.text}</a> <${Span} of=${of} /> <${SupersededBy} of=${of} /></span>
      <span class="row doing">${!hasEnded(of) && html`${button("never_true", "Wrong")}${button("no_longer_true", "Over")}`}${button("forget", "Forget")}</span></div>
    ${corrected && html`<${StillSaid} done=${corrected} />`}
    ${open === "forget" && html`<${Forget} id=${of.id} what="fact" heading=${false} onForgotten=${() => show("")} />`}
    ${open && open !== "forget" && html`<${Correct} key=${open} fact=${of} begins=${open} heading=${false} onDone=${(done) => (show(""), correct(done))} />`}
  </li>`;
}

function ProfileFacts({ id, name }) {
  const of = usePages("timeline", { id, limit: FACTS_A_PAGE });
  const facts = of.pages.flatMap((page) => page.facts).filter((fact) => fact.kind === "fact");
  const now = facts.filter((fact) => !hasEnded(fact));
  const before = facts.filter((fact) => hasEnded(fact)).reverse();
  return html`<${Answer} of=${of.first}>${() => html`
    <section class="card facts" aria-labelledby="now"><h2 id="now">Now</h2>
      ${!now.length && html`<p class="faint">Nothing is known of <bdi>${name}</bdi> that holds now.</p>`}
      ${byTopic(now).map(([topic, some]) => html`<section key=${topic} aria-label=${topic}><h3>${topic}</h3>
        <ul class="lines">${some.map((fact) => html`<${ProfileFact} key=${fact.id} of=${fact} />`)}</ul></section>`)}
      <${More} of=${of} what="facts" /></section>
    ${before.length > 0 && html`<section class="card facts" aria-labelledby="before"><h2 id="before">Before</h2>
      <ul class="lines">${before.map((fact) => html`<${ProfileFact} key=${fact.id} of=${fact} />`)}</ul></section>`}`}<//>`;
}

function ProfileTurns({ id }) {
  const of = usePages("turns_list", { about: id, limit: TURNS_A_PAGE });
  const turns = of.pages.flatMap((page) => page.turns);
  return html`<section aria-labelledby="spoken"><h2 id="spoken">Said of it</h2>
    <${Answer} of=${of.first}>${() => html`${!turns.length && html`<p class="faint">No turn speaks of it.</p>`}
      <ol class="plain talk" aria-label="Turns">${turns.map((one) => html`<${TurnOfTalk} key=${one.turn.id} of=${one} />`)}</ol>
      <${More} of=${of} what="turns" />`}<//></section>`;
}

/** The records that relations join it to. */
function ProfileRecords({ id, schema }) {
  const kinds = schema?.kinds || {};
  const of = useCall("graph_around", Object.keys(kinds).length ? { id, limit: 200 } : null, { live: true });
  const records = (of.data?.nodes || []).filter((node) => node.id !== id && kinds[node.kind]);
  if (!records.length) return null;
  return html`<section class="card" aria-labelledby="of-records"><h2 id="of-records">Records</h2>
    <ul class="lines">${records.map((node) => html`<li key=${node.id}><a class="item" dir="auto" href=${href("records", {}, node.kind, node.id)}>${node.name}</a> <span class="tag"><bdi>${node.kind}</bdi></span></li>`)}</ul></section>`;
}

/** The anchors that say one of its names. */
function ProfileAnchors({ names }) {
  const of = useCall("anchor_search", { query: names.join(" ").slice(0, 500), limit: ANCHORS }, { live: true });
  const folded = names.map((name) => name.toLowerCase());
  const anchors = (of.data?.hits || []).filter((hit) => folded.some((name) => `${hit.title} ${hit.text}`.toLowerCase().includes(name)));
  const bySlug = new Map(anchors.map((hit) => [hit.id.split("#")[0], hit]));
  if (!bySlug.size) return null;
  return html`<section class="card" aria-labelledby="of-anchors"><h2 id="of-anchors">Anchors</h2>
    <ul class="lines">${[...bySlug].map(([slug, hit]) => html`<li key=${slug}><a class="item" dir="auto" href=${href("anchors", {}, slug)}>${hit.title || slug}</a></li>`)}</ul></section>`;
}

/** Saying that two nodes are one: the other is looked for by its name. */
function SameAs({ of }) {
  const [words, look] = useState("");
  const [other, choose] = useState(null);
  const found = useCall("nodes_list", words ? { query: words, limit: NAMES } : null);
  const others = (found.data?.nodes || []).filter((node) => node.id !== of.id);
  const submit = (event) => {
    event.preventDefault();
    choose(null);
    look(new FormData(event.target).get("name").trim());
  };
  return html`<details><summary><h2>Is it the same as another?</h2></summary>
    <form class="row" onSubmit=${submit}><label>The other's name <input name="name" dir="auto" required maxlength="200" autocomplete="off" /></label> <button class="plain">Look</button></form>
    ${words && html`<${Answer} of=${found}>${() => others.length
      ? html`<ul class="lines">${others.map((node) => html`<li key=${node.id} class="row"><${Item} id=${node.id}>${node.name}<//> <span class="faint"><bdi>${node.kind}</bdi></span>
          <button class="plain" aria-label=${`Same as ${node.name}`} onClick=${() => choose(node)}>It is the same</button></li>`)}</ul>`
      : html`<p class="faint">Nobody and nothing else is called so.</p>`}<//>`}
    ${other && html`<${MergePlan} key=${other.id} pair=${{ keep: of.id, keep_name: of.name, drop: other.id, drop_name: other.name }}
      onMerged=${(done) => (choose(null), look(""), done.keep !== of.id && (location.hash = href("item", {}, done.keep)))} onLeave=${() => choose(null)} />`}
  </details>`;
}

export function Profile({ of }) {
  const schema = useSchema();
  const attributes = Object.entries(of.attributes || {}).filter(([, value]) => value !== null && value !== "");
  return html`
    <p class="kind" dir="auto">${of.kind}</p>
    <h1 tabindex="-1" dir="auto">${of.name}</h1>
    ${of.aliases?.length > 0 && html`<p class="faint">Also <bdi>${of.aliases.join(", ")}</bdi></p>`}
    ${(of.content || of.summary) && html`<${Said} text=${of.content || of.summary} />`}
    ${of.tags?.length > 0 && html`<p class="row">${of.tags.map((tag) => html`<span key=${tag} class="tag" dir="auto">#${tag}</span>`)}</p>`}
    ${attributes.length > 0 && html`<dl class="times">${attributes.map(([name, value]) => html`<div key=${name}><dt>${name}</dt>
      <dd class="said" dir="auto">${told(value)}</dd></div>`)}</dl>`}
    <p class="row"><a href=${href("graph", { node: of.id })}>In the graph</a> <a href=${href("time", { about: of.id })}>In time</a>
      ${schema?.kinds[of.kind] && html`<a href=${href("records", {}, of.kind, of.id)}>As a record, to be changed</a>`}</p>
    <${ProfileFacts} id=${of.id} name=${of.name} />
    <${ProfileRecords} id=${of.id} schema=${schema} />
    <${ProfileAnchors} names=${[of.name, ...(of.aliases || [])]} />
    <${ProfileTurns} id=${of.id} />
    <${SameAs} of=${of} />
    <${Forget} key=${of.id} id=${of.id} what=${of.kind.toLowerCase() || "thing"} />
  `;
}
