// Isolation: what the last proof came to, what stands between this memory and others; what the owner does is a command.
import { entity, html, useCall } from "../core.js";
import { Alert, Answer, Empty, Figures, When } from "../parts.js";

const Proved = ({ of }) => html`<section aria-label="The last proof">
  <h2>The last proof, <${When} at=${of.at} time /></h2>
  ${of.ok
    ? html`<p class="card">Nothing of one memory reached another.</p>`
    : html`<${Alert}>Something went wrong: ${of.leaks} leaks, ${of.told_apart} ids told apart, ${of.broken} calls broken. Run it again, and do not trust the boundary before it is whole.<//>`}
  <${Figures} of=${of} names=${["operations", "leaks", "told_apart", "broken"]} />
  <p class="faint">On the ${of.store} store, PPS ${of.version}, in ${of.seconds.toLocaleString("en")} s. Attacked are throw-away memories, which are gone afterwards; none of ${entity} was touched or read.</p>
</section>`;

const View = () => html`
  <h1 tabindex="-1">Isolation</h1>
  <${Answer} of=${useCall("last_proof", {}, { live: true })}>
    ${({ proof }) => proof ? html`<${Proved} of=${proof} />` : html`<${Empty} title="No proof was run here yet">
      <p>A proof attacks throw-away memories on this installation's store, in some seconds, and says whether anything of one reached another.</p><//>`}
  <//>
  <h2>What the owner of the machine does</h2>
  <p>This page stands for ${entity} alone, so it shows the commands.</p>
  <h3>Run a proof</h3><pre>pps verify-isolation</pre>
  <h3>Compare journal, graph and indexes</h3><pre>pps doctor</pre>
  <h3>Take a copy, and put one back</h3><pre>${`pps export ${entity} ${entity}.jsonl\npps import ${entity} ${entity}.jsonl`}</pre>
  <h3>End every session of this page; make its token worthless</h3><pre>${`pps open ${entity} --close\npps entity token ${entity} --revoke`}</pre>
`;

export default View;
