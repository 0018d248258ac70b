// Squad: for a member alone: what all may read, what came for this one, what waits for a reviewer.
import { call, entity, href, html, news, useCall, useState } from "../core.js";
import { Alert, Answer, Badge, Diff, Empty, More, When, counted, isMember, told, usePages, useSchema, useWaiting } from "../parts.js";

const SOME = 50;
const percent = (share) => `${Math.round(100 * share)} %`;

const Whose = ({ of, me }) => html`<p class="faint">${of.shared_by === me ? "you" : of.shared_by} · <${When} at=${of.shared_at || of.created_at} />${" "}
  · sure by ${percent(of.confidence)}${of.trust === "outside" ? " · rests on what was read outside" : ""}${of.state && ` · ${of.state.replaceAll("_", " ")}`}</p>`;

function Whole({ id, title }) {
  const [open, turn] = useState(false);
  const of = useCall("squad_get", open ? { ids: [id] } : null);
  if (!open) return html`<p><button class="quiet" aria-label=${`All of it: ${title}`} onClick=${() => turn(true)}>All of it</button></p>`;
  return html`<${Answer} of=${of}>${({ records: [{ fields, cites, relations }] }) => html`
    <dl class="times">${Object.entries(fields).map(([name, field]) => html`<div key=${name}><dt>${name.replaceAll("_", " ")}</dt><dd class="said" dir="auto">${told(field)}</dd></div>`)}</dl>
    <p class="faint">It rests on ${counted(cites.length, "record")} that you may read, and is joined to ${counted(relations.length, "other")}.</p>`}<//>`;
}

const Known = ({ of, me, children }) => html`<li class="card">
  <p class="row"><span class="tag">${of.type}</span> <b dir="auto">${of.title}</b></p>
  ${of.content !== of.title && html`<p class="said" dir="auto">${of.content}</p>`}
  <${Whose} of=${of} me=${me} />
  <${Whole} id=${of.id} title=${of.title} />
  ${children}
</li>`;

function TakeBack({ id, done }) {
  const [plan, show] = useState(null);
  const [error, fail] = useState("");
  const ask = (dry_run, then) => call("memory_revoke", { ids: [id], dry_run }).then(then, (problem) => fail(problem.message));
  if (error) return html`<${Alert}>${error}<//>`;
  return plan
    ? html`<p class="row">${counted(plan.withdrawn.length, "record")} would go out of the pool${
        plan.withdrawn.length > 1 ? ", what rests on it alone with it" : ""}. <button class="danger" onClick=${() => ask(false, done)}>Take it back</button>
        <button class="plain" onClick=${() => show(null)}>Leave it</button></p>`
    : html`<button class="quiet" onClick=${() => ask(true, show)}>Take back …</button>`;
}

const after = (page, pages) => {
  const shown = pages.reduce((sum, one) => sum + one.shared.length, 0);
  return page.shared.length > 0 && shown < page.total && { offset: shown };
};

function Pool({ query }) {
  const type = query.type || "";
  const of = usePages("squad_pool", { limit: SOME, ...(type && { kinds: [type] }) }, after);
  const shared = of.pages.flatMap((page) => page.shared);
  return html`<${Answer} of=${of.first}>${(pool) => html`
    <ul class="plain members">${pool.members.map((one) => html`<li key=${one.id} class="card"><span><b dir="auto">${one.title}</b>${one.id === pool.me && " (you)"}</span>
      <span class="faint">${one.role}${one.reviews ? ", reviews" : ""}${one.activity === "active" ? " · at work" : ""}</span></li>`)}</ul>
    <p class="row" role="group" aria-label="Types">
      ${[["", Object.values(pool.by_type).reduce((a, b) => a + b, 0)], ...Object.entries(pool.by_type).sort(([, a], [, b]) => b - a)].map(([name, n]) => html`
        <a key=${name} class="chip" href=${href("squad", { type: name })} aria-current=${name === type ? "true" : null}>${name || "All"} ${n}</a>`)}</p>
    ${shared.length
      ? html`<ul class="plain">${shared.map((one) => html`<${Known} key=${one.id} of=${one} me=${pool.me}>
          ${one.shared_by === pool.me && one.type !== "Task" && html`<${TakeBack} id=${one.id} done=${of.first.again} />`}<//>`)}</ul>`
      : html`<${Empty} title="Nothing is shared yet"><p>What a member keeps with a confidence of 70 % or more is shared, unless it is private. A fact of
          your own you share on its page.</p><//>`}
    <${More} of=${of} what=${`of ${pool.total.toLocaleString("en")}`} />`}<//>`;
}

const WHY = {
  direct: "you subscribe to its author", pool: "you subscribe to what is shared", broadcast: "it is for everyone",
  task: "a task for you", "task done": "a task that you gave has ended", "proposal pending_approval": "it waits for your review",
};

function Inbox() {
  const of = useCall("squad_inbox", { limit: 200 }, { live: true });
  const [error, fail] = useState("");
  const ack = (seqs) => call("squad_ack", { seqs }).then(news.tell, (problem) => fail(problem.message));
  return html`${error && html`<${Alert}>${error}<//>`}
    <${Answer} of=${of}>${({ deliveries }) => deliveries.length
      ? html`<p class="row"><span class="faint" role="status">${counted(deliveries.length, "delivery", "deliveries")}</span>
          <button class="plain" onClick=${() => ack(deliveries.map((one) => one.seq))}>I have seen them all</button></p>
          <ul class="plain">${deliveries.map((one) => html`<${Known} key=${one.seq} of=${one.record}>
            <p class="row"><button class="plain" aria-label=${`I have seen ${one.record.title}`} onClick=${() => ack([one.seq])}>Seen</button>
              <span class="faint">${WHY[one.why] || one.why}</span></p><//>`)}</ul>`
      : html`<${Empty} title="Nothing new"><p>Tasks, what was subscribed to, and answers to proposals come here.</p><//>`}<//>`;
}

const SAID = ["target_process", "risk_level", "effort_estimate", "implementation_steps", "metrics_before", "projected_metrics", "co_created_with"];

function Review({ of, reviews, mine, done }) {
  const [error, fail] = useState("");
  const { record } = of;
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const conditions = given.get("conditions").split("\n").map((one) => one.trim()).filter(Boolean);
    call("proposal_review", { id: record.id, decision: event.submitter.value, notes: given.get("notes"), conditions }).then(done, (problem) => fail(problem.message));
  };
  const said = SAID.filter((name) => of.fields[name] !== undefined);
  return html`<li class="card">
    <p class="row"><span class="tag">${record.type}</span> <b dir="auto">${record.title}</b></p>
    <p class="faint">${of.proposer}, since <${When} at=${of.since} /> · sure by ${percent(record.confidence)}</p>
    ${record.content !== of.proposed && html`<p class="said" dir="auto">${record.content}</p>`}
    ${of.stands ? html`<h2 class="small">What stands, and what is proposed</h2><${Diff} before=${of.stands} after=${of.proposed} />` : html`<h2 class="small">Proposed</h2><p class="said" dir="auto">${of.proposed}</p>`}
    ${said.length > 0 && html`<dl class="times">${said.map((name) => html`<div key=${name}><dt>${name.replaceAll("_", " ")}</dt><dd class="said" dir="auto">${told(of.fields[name])}</dd></div>`)}</dl>`}
    ${of.backing.length > 0 && html`<h2 class="small">It rests on</h2><ul class="lines">${of.backing.map((one) => html`<li key=${one.id}><span class="tag">${one.type}</span> <bdi>${one.content}</bdi></li>`)}</ul>`}
    ${error && html`<${Alert}>${error}<//>`}
    ${mine ? html`<p class="faint">It is your own: another decides.</p>`
      : reviews && html`<form class="form" onSubmit=${submit}>
        <label>Why <input dir="auto" name="notes" maxlength="2000" /></label>
        <label>What must hold, one a line <textarea dir="auto" name="conditions" rows="2"></textarea></label>
        <p class="row"><button value="approved">Approve</button> <button class="plain" value="needs_revision">Give back</button>
          <button class="danger" value="rejected">Reject</button></p>
      </form>`}
  </li>`;
}

function Approvals() {
  const of = useCall("proposal_pending", {}, { live: true });
  const squad = useCall("squad_pool", { limit: 1 });
  const { me = "", members = [] } = squad.data || {};
  const reviewers = members.filter((one) => one.reviews);
  const reviews = reviewers.some((one) => one.id === me);
  return html`
    ${squad.data && !reviews && html`<p class="faint">${reviewers.map((one) => one.title).join(", ") || "Nobody"} reviews here; you see what you proposed.</p>`}
    <${Answer} of=${of}>${({ pending }) => pending.length
      ? html`<ul class="plain">${pending.map((one) => html`<${Review} key=${one.record.id} of=${one} reviews=${reviews} mine=${one.proposer === me} done=${news.tell} />`)}</ul>`
      : html`<${Empty} title="Nothing waits"><p>Proposals to change how the squad works wait here, and beliefs that rest on what was read outside.</p><//>`}<//>`;
}

const TABS = { "": ["Pool", Pool], inbox: ["Inbox", Inbox], approvals: ["Approvals", Approvals] };

function View({ parts: [tab = ""], query }) {
  const schema = useSchema();
  const waiting = useWaiting(schema);
  const [, Part] = TABS[tab] || TABS[""];
  return html`
    <h1 tabindex="-1">Squad</h1>
    ${schema && (isMember(schema)
      ? html`<nav class="tabs" aria-label="Of the squad">${Object.entries(TABS).map(([name, [title]]) => html`<a key=${name} href=${href("squad", {}, ...(name ? [name] : []))} aria-current=${name === tab ? "page" : null}>${title}<${Badge} count=${waiting[name]} /></a>`)}</nav>
          <${Part} key=${tab} query=${query} />`
      : html`<${Empty} title="Of no squad"><p>A squad is several memories with a pool that all of them read; each keeps its own to itself.</p><pre>${`pps squad create team --from openclaw --member kublai=${entity}`}</pre><//>`)}
  `;
}

export default View;
