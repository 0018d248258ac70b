// Conversations: one from its beginning on, or all of them, the latest first; with the words that are looked for marked.
import { entity, go, href, html } from "../core.js";
import { Answer, Empty, More, Typed, clockDay, counted, usePages } from "../parts.js";
import { Turns, nameOf } from "../conversation.js";
import { wordsOf } from "../matches.js";

const PAGE = 30;

const title = (talk) => nameOf(talk.session) || `Conversation of ${clockDay(talk.last_at)}`;

const Sessions = ({ of, chosen, words }) => html`<label>Conversation
  <select value=${chosen} onChange=${(event) => go(href("turns", { session: event.target.value, words }))}>
    <option value="">all of them</option>
    ${chosen && !of.some((talk) => talk.session === chosen) && html`<option value=${chosen}>${nameOf(chosen) || "this one"}</option>`}
    ${of.map((talk) => html`<option key=${talk.session} value=${talk.session}>${title(talk)} (${talk.turns.toLocaleString("en")})</option>`)}
  </select>
</label>`;

function Pages({ session, words, about }) {
  const of = usePages("turns_list", { limit: PAGE, ...(session && { session }), ...(words && { query: words }), ...(about && { about }) });
  const turns = of.pages.flatMap((page) => page.turns);
  // One conversation is read from its beginning on, so that earlier turns come above.
  const isOne = Boolean(session) && !words;
  return html`<${Answer} of=${of.first}>${(page) => {
    if (!turns.length && !session && !words) {
      return html`<${Empty} title="Nothing was said yet">
        <p>Tell it something, bring conversations that you have had elsewhere, or let your coding agent's hooks tell it:</p>
        <pre>${`pps remember ${entity} "I drink my coffee black."\npps import ${entity} conversations.json\npps hooks install --entity ${entity}`}</pre>
        <p class="faint">What is said shows here at once.</p><//>`;
    }
    return html`
      <p class="row"><${Sessions} of=${page.sessions} chosen=${session} words=${words} />
        <span class="faint" role="status">${counted(turns.length, "turn")} shown, ${isOne ? "in order" : "newest first"}</span></p>
      ${!turns.length && html`<p class="faint">${words ? "Nobody said all of these words." : "Nothing was said in this conversation."}</p>`}
      ${isOne && html`<${More} of=${of} what="turns" />`}
      <${Turns} turns=${isOne ? [...turns].reverse() : turns} words=${wordsOf(words)} isNamed=${!session} />
      ${!isOne && html`<${More} of=${of} what="turns" />`}`;
  }}<//>`;
}

function View({ query }) {
  const { session = "", words = "", about = "" } = query;
  const submit = (event) => {
    event.preventDefault();
    go(href("turns", { session, about, words: new FormData(event.target).get("words").trim() }));
  };
  return html`<h1 tabindex="-1">Conversations</h1>
    <form class="asking" role="search" aria-label="What was said" onSubmit=${submit}>
      <label for="words" class="unseen">Words that were said</label>
      <${Typed} id="words" name="words" type="search" value=${words} maxlength="400" placeholder="Words that were said" autocomplete="off" />
      <button>Search</button>
      ${(words || about) && html`<a href=${href("turns", { session })}>Show all</a>`}
    </form>
    <${Pages} session=${session} words=${words} about=${about} />`;
}

export default View;
