// Time: what held at a moment, and what changed between two: what began, what ended, what took another's place.
import { entity, go, href, html, useCall, useEffect, useMemo, useState } from "../core.js";
import { Answer, Empty, FactLine, Item, Span, Typed, counted, wall } from "../parts.js";

const DAY = 86_400_000;

/** The day of milliseconds on the wall clock: the calendar here is the person's, and the server reads days as theirs. */
const day = (ms) => new Date(ms).toISOString().slice(0, 10);

function Changes({ of, until }) {
  const parts = [
    ["Began", of.opened, (one) => html`<${FactLine} key=${one.id} of=${one} at=${until} />`],
    ["Ended", of.closed, (one) => html`<${FactLine} key=${one.id} of=${one} />`],
    ["Replaced", of.replaced, ({ old, new: now }) => html`<li key=${old.id + now.id} class="pair">
      <p class="ended"><${Item} id=${old.id}><span class="said">${old.text}</span><//> <${Span} of=${old} /></p>
      <p><${Item} id=${now.id}>${now.text}<//> <${Span} of=${now} /></p>
    </li>`],
  ];
  return html`<div class="channels">
    ${parts.map(([title, some, line]) => html`<section key=${title} class="card changes" aria-label=${title}>
      <div class="row"><h3>${title}</h3><span class="faint">${some.length}</span></div>
      ${some.length ? html`<ul class="lines">${some.map(line)}</ul>` : html`<p class="faint">Nothing.</p>`}
    </section>`)}
  </div>
  ${of.more && html`<p class="faint">There is more: choose a shorter time.</p>`}`;
}

function Bars({ facts, from, to, since, until }) {
  const bars = useMemo(() => {
    const n = 60;
    const heights = new Array(n).fill(0);
    for (const one of facts) {
      const at = (wall(one.valid_at, one.valid_at_precision) - from) / (to - from);
      if (at >= 0 && at < 1) heights[Math.floor(at * n)] += 1;
    }
    const most = Math.max(1, ...heights);
    return heights.map((one) => one / most);
  }, [facts, from, to]);
  return html`<svg class="bars" viewBox="0 0 60 10" preserveAspectRatio="none" aria-hidden="true">
    ${bars.map((height, at) => {
      const here = from + ((at + 0.5) / 60) * (to - from);
      return html`<rect key=${at} x=${at + 0.1} width="0.8" y=${10 - 10 * height} height=${10 * height} class=${here >= since && here < until ? "in" : ""} />`;
    })}
  </svg>`;
}

function Slider({ label, value, from, to, onMove }) {
  const [at, move] = useState(value);
  useEffect(() => move(value), [value]);
  return html`<label class="slider"><span>${label} <b>${day(at)}</b></span>
    <input type="range" min=${from} max=${to} step=${DAY} value=${at} aria-valuetext=${day(at)}
      onInput=${(event) => move(Number(event.target.value))} onChange=${(event) => onMove(Number(event.target.value))} />
  </label>`;
}

/** The days to look at; a few that lie far before all others (somebody was born) would leave no room for the rest. */
function span(facts) {
  const times = facts
    .flatMap((one) => [[one.valid_at, one.valid_at_precision], [one.invalid_at, one.invalid_at_precision]])
    .filter(([at]) => at)
    .map(([at, precision]) => wall(at, precision))
    .sort((a, b) => a - b);
  const [first, early, last] = [times[0], times[Math.floor(times.length / 10)], times.at(-1)];
  const from = Math.floor((early - first > 2 * (last - early) ? early : first) / DAY) * DAY;
  return [from, Math.max(from + 2 * DAY, (Math.floor(last / DAY) + 1) * DAY)];
}

function Between({ facts, query }) {
  const dated = facts.filter((one) => one.valid_at);
  const [from, to] = span(dated);
  const until = Math.min(to, Math.max(from + DAY, Date.parse(query.until) || to));
  const since = Math.max(from, Math.min(until - DAY, Date.parse(query.since) || from));
  const about = query.about || "";
  const at = (given) => go(href("time", { ...query, ...given }), { replace: true });
  const changes = useCall("changes", { since: day(since), until: day(until), ...(about && { id: about }) }, { live: true });
  const held = useCall("timeline", { as_of: `${day(until - DAY)}T23:59:59.999999`, limit: 200, ...(about && { id: about }) }, { live: true });
  const submit = (event) => {
    event.preventDefault();
    at({ about: new FormData(event.target).get("about").trim() });
  };
  return html`
    <form class="asking" onSubmit=${submit}>
      <label for="about" class="unseen">Only what concerns a node, by its name or id</label>
      <${Typed} id="about" name="about" type="search" value=${about} placeholder="All, or only a name: Lisbon" autocomplete="off" />
      <button>Show</button>
    </form>
    <section class="card">
      <${Bars} facts=${dated} from=${from} to=${to} since=${since} until=${until} />
      <div class="sliders">
        <${Slider} label="From" value=${since} from=${from} to=${to - DAY} onMove=${(ms) => at({ since: day(Math.min(ms, until - DAY)) })} />
        <${Slider} label="As of" value=${until} from=${from + DAY} to=${to} onMove=${(ms) => at({ until: day(ms), since: day(Math.min(since, ms - DAY)) })} />
      </div>
    </section>
    <h2>What changed from ${day(since)} to ${day(until)}</h2>
    <${Answer} of=${changes}>${(data) => html`<${Changes} of=${data} until=${until} />`}<//>
    <h2>What held then</h2>
    <${Answer} of=${held}>
      ${(data) => html`<p class="faint">${counted(data.facts.length, "fact")}${data.next_cursor ? ", and more" : ""}, as of ${day(until)}</p>
        <ul class="lines card">${data.facts.map((one) => html`<${FactLine} key=${one.id} of=${one} at=${until - 1} />`)}</ul>`}
    <//>
  `;
}

function View({ query }) {
  const all = useCall("timeline", { limit: 1000 }, { live: true });
  return html`
    <h1 tabindex="-1">Time</h1>
    <${Answer} of=${all}>
      ${({ facts }) =>
        facts.some((one) => one.valid_at)
          ? html`<${Between} facts=${facts} query=${query} />`
          : html`<${Empty} title="No facts with a time yet"><p>Facts begin and end. As soon as there are some, this shows what held when, and what changed.</p>
              <pre>${`pps extract ${entity}   # reads what was said for facts, and says first what it takes`}</pre><//>`}
    <//>
  `;
}

export default { id: "time", title: "Time", View };
