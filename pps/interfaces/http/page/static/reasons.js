// Why a recall has something, in words; its ranks are shown when they are asked for.
import { html } from "./core.js";
import { Id } from "./parts.js";

/** What each perspective goes by. Some go by nearly the same: of those that share words, the words are said once. */
const REASONS = {
  bm25: "its words are those of the question",
  bm25_windows: "the turns around it have words of the question",
  trigrams: "it is spelt much like the question",
  phrase: "it has the quoted words side by side",
  expand: "it has words that mean the same",
  code: "it has the same identifiers",
  dense: "it means nearly the same",
  dense_names: "its name is near to the question",
  dense_windows: "with the turns around it, it means nearly the same",
  colbert: "word by word it is near to the question",
  late: "word by word it is near to the question",
  cross_encoder: "a model that read both finds that it answers",
  intent: "it fits what the question is after",
  named: "the question names it",
  near_named: "it stands next to something that the question names",
  near: "the graph ties it to something that the question names",
  near_center: "it is close in the graph",
  structural: "it is close in the graph",
  supports: "what it says is supported by what was found",
  mentions: "more turns speak of it",
  sequence: "it was said right before or after the best find",
  latest: "it was said last",
  recency: "it is recent",
  when: "it happened in the time that the question names",
  period: "it happened at the same hour of the week",
  cause: "it tells what led to what",
  tags: "it carries the tags",
};
const MOST_REASONS = 3;

/** The best reasons for a candidate, best rank first; perspectives that weigh nothing are no reason. */
export function reasonsOf({ ranks }, weights) {
  const weighty = Object.entries(ranks).filter(([name]) => weights[name]);
  const names = weighty.sort(([, a], [, b]) => a - b).map(([name]) => REASONS[name] || name.replaceAll("_", " "));
  return [...new Set(names)].slice(0, MOST_REASONS);
}

function Ranks({ of, weights }) {
  const ranks = Object.entries(of.ranks).sort(([, a], [, b]) => a - b);
  return html`<ul class="ranks">
    ${ranks.map(([name, rank]) => html`<li key=${name}>
      <span class="rank" title=${`weight ${weights[name] ?? 0}`}>${name} <b>#${rank}</b></span>
    </li>`)}
    ${of.factor !== 1 && html`<li><span class="rank">× ${of.factor.toFixed(2)}</span></li>`}
  </ul>`;
}

/** What became of a candidate and why, then its ranks on demand. */
export function Reasons({ of, weights }) {
  const reasons = reasonsOf(of, weights);
  const text = reasons.length > 0 ? `${reasons.slice(0, -1).join(", ")}${reasons.length > 1 ? " and " : ""}${reasons.at(-1)}` : "";
  return html`<p class="why"><bdi>${of.verdict}</bdi>. ${text && `It was found because ${text}.`} <${Id} of=${of.id} /></p>
    ${Object.keys(of.ranks).length > 0 && html`<details class="numbers"><summary class="why">Its ranks</summary><${Ranks} of=${of} weights=${weights} /></details>`}`;
}
