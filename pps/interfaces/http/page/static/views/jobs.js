// Jobs: what waits to be taken into graph and indexes, what could not be and why, and trying it again.
import { call, entity, html, useCall, useState } from "../core.js";
import { Alert, Answer, Empty, Figures, Item, More, State, When, counted, usePages } from "../parts.js";

const PAGE = 100;

/** Every attempt at a job, asked for when it is opened. */
function Attempts({ id }) {
  const of = useCall("job_status", { id: String(id) }, { live: true });
  return html`<${Answer} of=${of}>${({ tried }) => html`<ol class="lines">
    ${!tried.length && html`<li class="faint">No attempt has ended.</li>`}
    ${tried.map((one, at) => html`<li key=${at}><${When} at=${one.began_at} time /> ${one.stage}: ${one.outcome}${one.error && html` <span class="why">${one.error}</span>`}</li>`)}
  </ol>`}<//>`;
}

function Job({ of, onRetry }) {
  const [open, turn] = useState(false);
  return html`<li>
    <p class="row"><${State} of=${of.state} /> <${Item} id=${of.turn_id}><span class="said" dir="auto">${of.text}</span><//></p>
    ${of.error && html`<p class="why" dir="auto">${of.error}</p>`}
    <p class="row faint">Job ${of.id}, <${When} at=${of.queued_at} time />, ${counted(of.attempts, "attempt")}
      ${of.next_at && of.state === "queued" && html`<span>, next at <${When} at=${of.next_at} time /></span>`}
      <button class="quiet" aria-expanded=${open} onClick=${() => turn(!open)}>Attempts</button>
      ${of.state === "failed" && html`<button class="plain" onClick=${() => onRetry({ ids: [of.id] })}>Try again</button>`}</p>
    ${open && html`<${Attempts} id=${of.id} />`}
  </li>`;
}

const after = ({ next }) => next && { after: next };

function List({ title, of, none, onRetry }) {
  const jobs = of.pages.flatMap((page) => page.jobs);
  return html`<section aria-label=${title}><h2>${title}</h2>
    <${Answer} of=${of.first}>${() => html`
      ${!jobs.length && html`<p class="faint">${none}</p>`}
      ${jobs.length > 0 && html`<ul class="lines card">${jobs.map((one) => html`<${Job} key=${one.id} of=${one} onRetry=${onRetry} />`)}</ul>`}
      <${More} of=${of} what="jobs" />`}<//>
  </section>`;
}

function View() {
  const stats = useCall("ingestion_stats", {}, { live: true });
  const failed = usePages("jobs_list", { state: "failed", limit: PAGE }, after);
  const running = usePages("jobs_list", { state: "running", limit: PAGE }, after);
  const queued = usePages("jobs_list", { state: "queued", limit: PAGE }, after);
  const [said, say] = useState(null);
  const retry = (which) =>
    call("jobs_retry", which).then(
      ({ retried }) => (say(html`<p class="card" role="status">${counted(retried.length, "job")} tried again.</p>`), failed.first.again(), queued.first.again()),
      (problem) => say(html`<${Alert}>${problem.message}<//>`),
    );
  const total = (of) => of.queued + of.running + of.done + of.failed + of.dropped;
  return html`
    <h1 tabindex="-1">Jobs</h1>
    <${Answer} of=${stats}>${(of) => total(of) === 0
      ? html`<${Empty} title="No work yet">
          <p>Each text that is remembered is a job until graph and indexes have it. Give it one:</p>
          <pre>${`pps remember ${entity} "I drink my coffee black."`}</pre><//>`
      : html`<${Figures} of=${of} names=${["queued", "running", "done", "failed", "dropped"]} />
          ${of.waits_for?.map((one) => html`<${Alert} key=${one}>It waits: ${one}<//>`)}
          ${said}
          <${List} title="Failed" of=${failed} none="None: all that was said could be taken in." onRetry=${retry} />
          ${of.failed > 0 && html`<p class="row"><button onClick=${() => retry({ all: true })}>Try all of them again</button></p>
            <p class="faint">Their texts are safe in the journal. Giving up is the owner's:</p><pre>${`pps jobs drop ${entity} --all`}</pre>`}
          <${List} title="In hand" of=${running} none="Nothing at this moment." onRetry=${retry} />
          <${List} title="Waiting" of=${queued} none="Nothing waits." onRetry=${retry} />`}<//>
  `;
}

export default View;
