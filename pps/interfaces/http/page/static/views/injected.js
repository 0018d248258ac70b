// Injected: what hooks put before agents unasked: how much, session by session, of which parts.
import { entity, go, href, html, useCall } from "../core.js";
import { Answer, Empty, Figures, Id, When, counted } from "../parts.js";

const DAYS = [1, 7, 30];
const PARTS = { startup: "at its start", recalled: "at its prompts" };

/** What one session was given since it began, by part. */
const Parts = ({ session }) => html`<${Answer} of=${useCall("context_usage", { session }, { live: true })}>
  ${({ parts, tokens }) => html`<section class="card" aria-label=${`Given to ${session}`}>
    <div class="row"><h2 class="said" dir="auto">${session}</h2><a href=${href("turns", { session })}>its turns</a></div>
    ${!parts.length && html`<p class="faint">Nothing since it was last compacted.</p>`}
    <ul class="lines">${parts.map((one) => html`<li key=${one.part}>${PARTS[one.part] || one.part}:
      ${" "}${counted(one.tokens, "token")} in ${counted(one.times, "pack")}</li>`)}</ul>
    ${parts.length > 1 && html`<p class="faint">${counted(tokens, "token")} in all, since it began or was last compacted.</p>`}
  </section>`}
<//>`;

/** What each pack of a session held, the latest first. */
const Packs = ({ packs }) => html`<section aria-label="Packs">
  ${packs.map((pack) => html`<article key=${pack.at + pack.occasion} class="card">
    <p class="faint"><${When} at=${pack.at} time /> · ${pack.occasion} · ${counted(pack.tokens, "token")}</p>
    ${!pack.lines.length && html`<p class="faint">${pack.tokens ? "What it held is forgotten, or was no item." : "Nothing."}</p>`}
    <ul class="lines">${pack.lines.map((line) => html`<li key=${line.id}><span class="said" dir="auto">${line.text}</span> <${Id} of=${line.id} /></li>`)}</ul>
  </article>`)}
</section>`;

function Sessions({ of, days, chosen }) {
  return html`<h2>By session</h2>
    <div class="wide" tabindex="0" role="region" aria-label="Sessions"><table>
      <thead><tr><th scope="col">Session</th><th scope="col">Prompts</th><th scope="col">With nothing</th><th scope="col">Tokens</th><th scope="col">Last</th></tr></thead>
      <tbody>${of.map((one) => html`<tr key=${one.session}>
        <th scope="row">${one.session
          ? html`<a dir="auto" href=${href("injected", { days, session: one.session })} aria-current=${one.session === chosen ? "true" : null}>${one.session}</a>`
          : "asked without a session"}</th>
        <td>${one.prompts.toLocaleString("en")}</td><td>${one.empty.toLocaleString("en")}</td><td>${one.tokens.toLocaleString("en")}</td><td><${When} at=${one.last_at} time /></td>
      </tr>`)}</tbody>
    </table></div>`;
}

function View({ query }) {
  const days = DAYS.includes(Number(query.days)) ? Number(query.days) : 7;
  const of = useCall("injected", { days, ...(query.session && { session: query.session }) }, { live: true });
  return html`
    <h1 tabindex="-1">Injected</h1>
    <p class="row">${DAYS.map((n) => html`<button key=${n} class="quiet" aria-pressed=${n === days}
      onClick=${() => go(href("injected", { days: n }))}>${counted(n, "day")}</button>`)}</p>
    <${Answer} of=${of}>${(given) => !given.latest.length
      ? html`<${Empty} title="Nothing was put before an agent in this time">
          <p>Hooks give a coding agent at every prompt what this memory knows about it. Install them for ${entity}, then talk:</p>
          <pre>${`pps hooks install --entity ${entity}`}</pre>
          <p class="faint">What a prompt would be given shows under <a href="#/ask">Ask</a>; that is not counted here.</p><//>`
      : html`
        <${Figures} of=${{ ...given, with_nothing: given.empty, tokens_a_session: Math.round(given.tokens_a_session ?? 0) }}
          names=${["sessions", "prompts", "with_nothing", "tokens", "tokens_a_session"]} />
        ${query.session && html`<${Parts} key=${query.session} session=${query.session} />`}
        ${query.session && html`<${Packs} packs=${given.packs} />`}
        <${Sessions} of=${given.latest} days=${days} chosen=${query.session} />`}<//>
  `;
}

export default View;
