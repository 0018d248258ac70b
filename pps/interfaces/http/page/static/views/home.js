// Home: who the entity is, what matters now, what changed, what it was given today, what waits for the person.
import { entity, href, html, useCall } from "../core.js";
import { Answer, Empty, Item, When, counted } from "../parts.js";
import { Said } from "../markdown.js";
import { Conversation } from "../conversation.js";

const GROUPS = [["people", "People"], ["places", "Places"], ["projects", "Projects"], ["things", "Things"]];
const CHANGES = { new: "New", replaced: "Changed", ended: "Over" };
const FEW = 4;

/** The part of the page below a heading; nothing while it has no lines. */
const Part = ({ id, title, children, more }) => html`<section class="card" aria-labelledby=${`home-${id}`}>
  <div class="row"><h2 id=${`home-${id}`}>${title}</h2>${more}</div>${children}
</section>`;

function Identity({ overview }) {
  const own = href("item", {}, overview.own_node);
  return html`<${Part} id="identity" title=${`Who ${entity} is`} more=${html`<a href=${own}>What is known of ${entity}</a>`}>
    ${overview.identity
      ? html`<div class="identity" tabindex="0" role="region" aria-label="identity.md"><${Said} text=${overview.identity} /></div>`
      : html`<p class="faint">Nobody has written it down yet. What stands in <code>identity.md</code> of ${entity}'s folder shows here, and begins every session.</p>`}
  <//>`;
}

const NodeLine = ({ of }) => html`<li><${Item} id=${of.id}><b>${of.name}</b><//>
  <span class="why said" dir="auto">${of.line}</span></li>`;

function Current({ nodes }) {
  const groups = GROUPS.map(([group, title]) => [group, title, nodes.filter((node) => node.group === group)]).filter(([, , some]) => some.length);
  return html`<${Part} id="current" title="What matters now" more=${html`<a href="#/names">Everybody and everything</a>`}>
    ${!groups.length && html`<p class="faint">Nobody and nothing is known yet.</p>`}
    <div class="groups">${groups.map(([group, title, some]) => html`<section key=${group} aria-label=${title}><h3>${title}</h3>
      <ul class="lines">${some.slice(0, FEW).map((node) => html`<${NodeLine} key=${node.id} of=${node} />`)}</ul>
      ${some.length > FEW && html`<details><summary class="why">${some.length - FEW} more</summary>
        <ul class="lines">${some.slice(FEW).map((node) => html`<${NodeLine} key=${node.id} of=${node} />`)}</ul></details>`}</section>`)}</div>
  <//>`;
}

const Change = ({ of }) => html`<li><span class=${`tag ${of.change}`}>${CHANGES[of.change]}</span>
  ${" "}<${Item} id=${of.id}>${of.text}<//> <span class="faint"><${When} at=${of.at} precision=${of.at_precision} /></span>
  ${of.before && html`<br /><span class="why">until then: <${Item} id=${of.before}>${of.before_text}<//></span>`}</li>`;

const Changes = ({ changes }) => html`<${Part} id="changes" title="What changed lately" more=${html`<a href="#/time">In time</a>`}>
  ${changes.length
    ? html`<ul class="lines">${changes.map((change) => html`<${Change} key=${change.id} of=${change} />`)}</ul>`
    : html`<p class="faint">Nothing yet.</p>`}
<//>`;

const Conversations = ({ conversations }) => html`<${Part} id="talks" title="Latest conversations" more=${html`<a href="#/turns">All of them</a>`}>
  <ul class="lines">${conversations.map((talk) => html`<li key=${talk.session}><${Conversation} of=${talk} /></li>`)}</ul>
<//>`;

const Records = ({ records }) => html`<${Part} id="records" title="Records" more=${html`<a href="#/records">All of them</a>`}>
  <ul class="lines">${records.map((record) => html`<li key=${record.id}><a class="item" dir="auto" href=${href("records", {}, record.kind, record.id)}>${record.title}</a>
    ${" "}<span class="tag"><bdi>${record.kind}</bdi></span> ${record.state && html`<span class="tag">${record.state.replaceAll("_", " ")}</span>`}</li>`)}</ul>
<//>`;

/** The address of a line of a pack: an anchor's by its slug. */
const lineAddress = ({ id, kind }) => (kind === "anchor" ? href("anchors", {}, id.split("#")[0]) : href("item", {}, id));

const Given = ({ given }) => html`<${Part} id="given" title=${`What ${entity} was given today`} more=${html`<a href="#/injected">By session</a>`}>
  ${given.sessions
    ? html`<p class="faint">${counted(given.tokens, "token")} in ${counted(given.sessions, "session")}, ${counted(given.prompts, "prompt")}.</p>
        <ul class="lines">${given.lines.map((line) => html`<li key=${line.id}><a class="item said" dir="auto" href=${lineAddress(line)}>${line.text}</a></li>`)}</ul>`
    : html`<p class="faint">Nothing: no agent has asked since midnight.</p>`}
<//>`;

function Waiting({ of, squad }) {
  const merges = of.merges === 50 ? "50 or more pairs" : counted(of.merges, "pair");
  const lines = [
    of.failed > 0 && html`<li key="failed"><a href="#/jobs">${counted(of.failed, "turn")} could not be taken in</a>
      <ul class="lines">${of.failed_turns.map((turn) => html`<li key=${turn.id}><${Item} id=${turn.id}>${turn.text}<//> <span class="why" dir="auto">${turn.error}</span></li>`)}</ul></li>`,
    of.merges > 0 && html`<li key="merges"><a href="#/merges">${merges} may be one and the same</a>
      <ul class="lines">${of.proposed.map((pair) => html`<li key=${`${pair.keep} ${pair.drop}`}><a class="item" dir="auto" href=${href("merges", { keep: pair.keep, drop: pair.drop })}><bdi>${pair.keep_name}</bdi> and <bdi>${pair.drop_name}</bdi></a></li>`)}</ul></li>`,
    squad.approvals > 0 && html`<li key="approvals"><a href="#/squad/approvals">${counted(squad.approvals, "share")} to review</a></li>`,
    squad.inbox > 0 && html`<li key="inbox"><a href="#/squad/inbox">${counted(squad.inbox, "message")} in the inbox of the squad</a></li>`,
  ].filter(Boolean);
  return html`<${Part} id="waiting" title="What waits for you">
    ${lines.length ? html`<ul class="lines">${lines}</ul>` : html`<p class="faint">Nothing.</p>`}
  <//>`;
}

const Health = ({ of }) => html`<p class="health"><a href="#/health">${of.ok
  ? `All is well${of.in_work ? `; ${counted(of.in_work, "turn")} being taken in` : ""}.`
  : html`${counted(of.problems, "problem")}: <bdi>${of.problem}</bdi>`}</a></p>`;

function First() {
  return html`<${Empty} title=${`${entity} remembers nothing yet`}>
    <p>Tell it something, or give it conversations that you have had elsewhere:</p>
    <pre>${`pps remember ${entity} "I drink my coffee black."\npps import ${entity} conversations.json\npps hooks install`}</pre>
    <p class="faint">This page shows it as soon as it is taken in.</p>
  <//>`;
}

/** What the memory holds → the view that has all of it. */
const HOLDINGS = [["turns", "turns"], ["nodes", "names"], ["facts", "time"], ["anchors", "anchors"]];

const Holdings = ({ of }) => html`<dl class="figures">
  ${HOLDINGS.map(([name, view]) => html`<div key=${name}><dt>${name}</dt><dd><a href=${`#/${view}`} aria-label=${`All ${name}`}>${of[name].toLocaleString("en")}</a></dd></div>`)}
</dl>`;

function View({ waiting }) {
  const overview = useCall("overview", {}, { live: true });
  return html`<h1 tabindex="-1">${entity}</h1>
    <${Answer} of=${overview}>${(of) => {
      const isEmpty = of.holds.turns + of.holds.facts + of.holds.anchors === 0;
      return html`<${Health} of=${of.health} />
        ${isEmpty && html`<${First} />`}
        ${isEmpty && waiting.inbox + waiting.approvals > 0 && html`<${Waiting} of=${of.waiting} squad=${waiting} />`}
        <${Identity} overview=${of} />
        ${!isEmpty && html`<div class="home">
          <div><${Current} nodes=${of.nodes} /><${Changes} changes=${of.changes} /></div>
          <div><${Waiting} of=${of.waiting} squad=${waiting} />
            <${Conversations} conversations=${of.conversations} />
            ${of.records.length > 0 && html`<${Records} records=${of.records} />`}
            <${Given} given=${of.given} /></div>
        </div><${Holdings} of=${of.holds} />`}`;
    }}<//>`;
}

export default View;
