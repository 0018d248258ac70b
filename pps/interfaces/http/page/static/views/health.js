// Health: whether the memory can do its work, what waits, what the indexes hold.
import { entity, html, useCall } from "../core.js";
import { Alert, Answer, Figures } from "../parts.js";

function View() {
  const health = useCall("health", {}, { live: true });
  const jobs = useCall("ingestion_stats", {}, { live: true });
  const indexes = useCall("index_status", {}, { live: true });
  return html`
    <h1 tabindex="-1">Health</h1>
    <${Answer} of=${health}>
      ${({ ok, problems, notes }) => html`
        ${ok ? html`<p class="card">All is well: what ${entity} is told can be found again.</p>` : problems.map((one) => html`<${Alert} key=${one}>${one}<//>`)}
        ${notes.map((one) => html`<p key=${one} class="card">${one}</p>`)}`}
    <//>
    <h2>Taking in</h2>
    <${Answer} of=${jobs}>
      ${(of) => html`<${Figures} of=${of} names=${["queued", "running", "done", "failed", "dropped"]} />
        <p>${of.failed > 0 ? "Why some failed, and trying them again" : "What waits"}: <a href="#/jobs">Jobs</a>.</p>`}
    <//>
    <h2>Indexes</h2>
    <${Answer} of=${indexes}>
      ${(of) => html`<table>
        <thead><tr><th scope="col">Of</th><th scope="col">Words</th><th scope="col">Meaning (${of.model})</th></tr></thead>
        <tbody>${Object.keys(of.text).map((name) => html`<tr key=${name}><th scope="row">${name.replace("_", " ")}</th>
          <td>${of.text[name].toLocaleString("en")}</td><td>${(of.vectors[name] ?? 0).toLocaleString("en")}</td></tr>`)}</tbody>
      </table>`}
    <//>
    <p>Whether anybody else reads this memory, and when that was last tried: <a href="#/isolation">Isolation</a>.</p>
  `;
}

export default View;
