// Turns: what was said, newest first, a page at a time: all, of one session, or with some words; and what was made of each.
import { entity, go, href, html } from "../core.js";
import { Answer, Empty, More, TurnAndFacts, Typed, counted, usePages } from "../parts.js";

const PAGE = 30;

const Sessions = ({ of, chosen, words }) => html`<label>Conversation
  <select value=${chosen} onChange=${(event) => go(href("turns", { session: event.target.value, words }))}>
    <option value="">all of them</option>
    ${chosen && !of.some((one) => one.session === chosen) && html`<option value=${chosen}>${chosen}</option>`}
    ${of.map((one) => html`<option key=${one.session} value=${one.session}>${one.session} (${one.turns.toLocaleString("en")})</option>`)}
  </select>
</label>`;

function Pages({ session, words }) {
  const of = usePages("turns_list", { limit: PAGE, ...(session && { session }), ...(words && { query: words }) });
  const turns = of.pages.flatMap((page) => page.turns);
  return html`<${Answer} of=${of.first}>${(page) => {
    if (!turns.length && !session && !words) {
      return html`<${Empty} title="Nothing was said yet">
        <p>Tell it something, bring conversations that you have had elsewhere, or let your coding agent's hooks tell it:</p>
        <pre>${`pps remember ${entity} "I drink my coffee black."\npps import ${entity} conversations.json\npps hooks install --entity ${entity}`}</pre>
        <p class="faint">What is said shows here at once.</p><//>`;
    }
    return html`
      <p class="row"><${Sessions} of=${page.sessions} chosen=${session} words=${words} />
        <span class="faint" role="status">${counted(turns.length, "turn")} shown, newest first</span></p>
      ${!turns.length && html`<p class="faint">${words ? "Nobody said all of these words." : "Nothing was said in this conversation."}</p>`}
      <ol class="plain" aria-label="Turns">${turns.map((one) => html`<${TurnAndFacts} key=${one.turn.id} of=${one} />`)}</ol>
      <${More} of=${of} what="turns" />`;
  }}<//>`;
}

function View({ query }) {
  const { session = "", words = "" } = query;
  const submit = (event) => {
    event.preventDefault();
    go(href("turns", { session, words: new FormData(event.target).get("words").trim() }));
  };
  return html`<h1 tabindex="-1">Conversations</h1>
    <form class="asking" role="search" onSubmit=${submit}>
      <label for="words" class="unseen">Words that were said</label>
      <${Typed} id="words" name="words" type="search" value=${words} maxlength="400" placeholder="Words that were said" autocomplete="off" />
      <button>Search</button>
      ${words && html`<a href=${href("turns", { session })}>Show all</a>`}
    </form>
    <${Pages} session=${session} words=${words} />`;
}

export default View;
