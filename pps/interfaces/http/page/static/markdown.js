// Stored text as its writer meant it: Markdown as elements of the page, each made by name here, never by HTML.
//
// This is the part of CommonMark and of GitHub's tables that people and models write: headings, lists, quotes, code,
// tables, emphasis, links. What is no mark for certain stays as it was written, line breaks too; HTML is shown as text.
// Pictures are not loaded, they are links; links lead to http, https and mailto alone, and say where. Nesting is
// bounded, and the time grows with the text: a library that keeps to both for every text would be larger than this.
import { html } from "./core.js";

const MOST_CHARACTERS = 100_000; // a longer text is shown as it was written
const MOST_LEVELS = 6; // of lists and quotes in each other; what is deeper is shown as it was written
const MOST_INLINE_LEVELS = 4;
const MOST_ADDRESS = 2_000;
const MOST_COLUMNS = 40;
const MOST_OPEN = 20; // marks of emphasis in each other

const FENCE = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,8})([-*+]|\d{1,9}[.)])( +)(?=\S)/;
const COLUMNS = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;
const MARKS = "\\`*_[]()#+-.!>~|<";

/** A stored text; `plain` shows it as it was written. */
export function Said({ text, plain = false, ...rest }) {
  const isPlain = plain || text.length > MOST_CHARACTERS;
  return html`<div ...${rest} class=${`said text ${rest.class || ""}`} dir="auto">${isPlain ? text : blocks(text.split("\n"), 0)}</div>`;
}

/** The elements of some lines. */
function blocks(lines, level) {
  if (level > MOST_LEVELS) return [paragraph(lines, 0)];
  const found = [];
  for (let at = 0; at < lines.length; ) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const take = [code, heading, rule, quote, list, table].find((one) => one.begins(lines, at)) || prose;
    const [element, next] = take(lines, at, level);
    found.push(element);
    at = next;
  }
  return found;
}

const begins = (lines, at) => [code, heading, rule, quote, list].some((one) => one.begins(lines, at));
const short = (line) => line.length <= 500;

function code(lines, at) {
  const fence = FENCE.exec(lines[at])[1];
  let end = at + 1;
  while (end < lines.length && !closes(lines[end], fence)) end += 1;
  return [html`<pre class="code" dir="ltr" tabindex="0"><code>${lines.slice(at + 1, end).join("\n")}</code></pre>`, end + 1];
}
code.begins = (lines, at) => short(lines[at]) && FENCE.test(lines[at]);

function closes(line, fence) {
  const mark = line.trim();
  return mark.length >= fence.length && short(mark) && mark === fence[0].repeat(mark.length);
}

function heading(lines, at) {
  const [, marks, title] = HEADING.exec(lines[at]);
  // No heading of the page: those tell how the page is made.
  return [html`<p class=${`heading level${marks.length}`} dir="auto">${inline(title.replace(/[ \t]#+[ \t]*$/, ""), 0)}</p>`, at + 1];
}
heading.begins = (lines, at) => short(lines[at]) && HEADING.test(lines[at]);

const rule = (lines, at) => [html`<hr />`, at + 1];
rule.begins = (lines, at) => short(lines[at]) && RULE.test(lines[at]);

function quote(lines, at, level) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [html`<blockquote dir="auto">${blocks(inner, level + 1)}</blockquote>`, end];
}
quote.begins = (lines, at) => QUOTE.test(lines[at]);

function list(lines, at, level) {
  const isNumbered = (mark) => !"-*+".includes(mark);
  const [, , first] = ITEM.exec(lines[at]);
  const items = [];
  while (at < lines.length) {
    const item = rule.begins(lines, at) ? null : ITEM.exec(lines[at]);
    if (!item || isNumbered(item[2]) !== isNumbered(first)) break;
    const width = item[0].length;
    const inner = [lines[at].slice(width)];
    for (at += 1; at < lines.length; at += 1) {
      const indent = lines[at].length - lines[at].trimStart().length;
      const isBlank = !lines[at].trim();
      const follows = indent >= Math.min(width, item[1].length + 2);
      const isLazy = !isBlank && inner.at(-1).trim() && !begins(lines, at);
      if (!isBlank && !follows && !isLazy) break;
      if (isBlank && !(at + 1 < lines.length && (lines[at + 1].startsWith(" ") || ITEM.test(lines[at + 1])))) break;
      inner.push(lines[at].slice(Math.min(indent, width)));
    }
    items.push(html`<li dir="auto">${blocks(inner, level + 1)}</li>`);
  }
  const start = Number.parseInt(first, 10);
  if (!isNumbered(first)) return [html`<ul dir="auto">${items}</ul>`, at];
  const isWide = String(start + items.length).length > 3; // numbers that would stand outside of the text's box
  return [html`<ol dir="auto" start=${start} class=${isWide ? "inside" : ""}>${items}</ol>`, at];
}
list.begins = (lines, at) => ITEM.test(lines[at]);

function table(lines, at) {
  const rows = [cells(lines[at])];
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) rows.push(cells(lines[(end += 1) - 1]));
  const [head, ...body] = rows;
  const row = (texts, tag) => html`<tr>${head.map((_, column) => html`<${tag} dir="auto">${inline(texts[column] || "", 0)}<//>`)}</tr>`;
  return [
    html`<div class="wide" tabindex="0" role="region" aria-label="Table"><table class="texts"><thead>${row(head, "th")}</thead>
      <tbody>${body.map((texts) => row(texts, "td"))}</tbody></table></div>`,
    end,
  ];
}
table.begins = (lines, at) =>
  lines[at].includes("|") && at + 1 < lines.length && short(lines[at + 1]) && lines[at + 1].includes("|") && COLUMNS.test(lines[at + 1].trim());

function cells(line) {
  const found = [""];
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") found[found.length - 1] += text[(at += 1)];
    else if (text[at] === "|" && found.length < MOST_COLUMNS) found.push("");
    else found[found.length - 1] += text[at];
  }
  return found.map((one) => one.trim());
}

function prose(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !begins(lines, end) && !table.begins(lines, end)) end += 1;
  return [paragraph(lines.slice(at, end), 0), end];
}

const paragraph = (lines, level) => html`<p dir="auto">${inline(lines.join("\n"), level)}</p>`;

/** The texts and elements of a text within a block. */
function inline(text, level, inLink = false) {
  const nodes = [""]; // texts, elements, and open marks of emphasis as `{mark, at}`
  const open = [];
  const brackets = level > MOST_INLINE_LEVELS ? new Map() : matching(text);
  const missing = new Set(); // lengths of runs of backticks that nothing closes from here on
  const write = (piece) => (typeof nodes.at(-1) === "string" && typeof piece === "string" ? (nodes[nodes.length - 1] += piece) : nodes.push(piece));
  const take = (taken) => {
    if (!taken) return false;
    write(taken[0]);
    at = taken[1];
    return true;
  };
  let at = 0;
  while (at < text.length) {
    const mark = text[at];
    if (mark === "\\" && at + 1 < text.length && MARKS.includes(text[at + 1])) {
      write(text[at + 1]);
      at += 2;
    } else if (mark === "`" && take(codeSpan(text, at, missing))) continue;
    else if ((mark === "[" || (mark === "!" && text[at + 1] === "[")) && take(link(text, at, brackets, level, inLink))) continue;
    else if ((mark === "h" || mark === "<") && !inLink && take(address(text, at))) continue;
    else if (mark === "*" || mark === "_" || mark === "~") at = emphasis(text, at, nodes, open, write);
    else {
      const next = text.slice(at + 1).search(/[\\`[!h<*_~]/);
      const end = next < 0 ? text.length : at + 1 + next;
      write(text.slice(at, end));
      at = end;
    }
  }
  return nodes.map((one) => (one?.mark ? one.mark : one));
}

function codeSpan(text, at, missing) {
  const length = run(text, at);
  if (!missing.has(length)) {
    for (let end = text.indexOf("`", at + length); end >= 0; ) {
      const closing = run(text, end);
      if (closing === length) {
        const inner = text.slice(at + length, end);
        const isPadded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim();
        return [html`<code dir="ltr">${isPadded ? inner.slice(1, -1) : inner}</code>`, end + length];
      }
      end = text.indexOf("`", end + closing);
    }
    missing.add(length);
  }
  return ["`".repeat(length), at + length];
}

/** How many times the character at a place stands there. */
function run(text, at) {
  let end = at + 1;
  while (text[end] === text[at]) end += 1;
  return end - at;
}

/** The place of each opening bracket's closing one. */
function matching(text) {
  const found = new Map();
  const open = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") open.push(at);
    else if (text[at] === "]" && open.length) found.set(open.pop(), at);
  }
  return found;
}

/** `[words](address)`; a picture is a link to it. */
function link(text, at, brackets, level, inLink) {
  const begin = text[at] === "!" ? at + 1 : at;
  const end = brackets.get(begin);
  if (inLink || end === undefined || text[end + 1] !== "(") return null;
  const target = /^\([ \t]*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:[ \t]+"[^"\n]*")?[ \t]*\)/.exec(text.slice(end + 1, end + 2 + MOST_ADDRESS));
  if (!target) return null;
  const words = text.slice(begin + 1, end);
  const where = safe(target[1]);
  if (!where) return null; // shown as it was written
  const label = begin > at ? ["picture", words && ": ", words] : inline(words, level + 1, true);
  return [anchor(where, label, where.host || where.pathname), end + 1 + target[0].length];
}

/** An address that stands by itself, or in angle brackets. */
function address(text, at) {
  const begin = text[at] === "<" ? at + 1 : at;
  if (!/^https?:\/\//.test(text.slice(begin, begin + 8)) || /\w/.test(text[at - 1] || "")) return null;
  let written = /^[^\s<>"`]+/.exec(text.slice(begin, begin + MOST_ADDRESS))[0];
  if (begin > at) {
    if (text[begin + written.length] !== ">") return null;
  } else {
    const isPaired = written.includes("(");
    written = written.replace(isPaired ? /[.,;:!?'*_~\]]{1,9}$/ : /[.,;:!?'*_~)\]]{1,9}$/, "");
  }
  const where = safe(written);
  return where && [anchor(where, written, ""), begin + written.length + (begin > at ? 1 : 0)];
}

/** The address that a link may lead to; null for any other. */
function safe(written) {
  try {
    const where = new URL(written);
    return ["http:", "https:", "mailto:"].includes(where.protocol) ? where : null;
  } catch {
    return null; // none, or one within this page
  }
}

const anchor = (where, label, host) =>
  html`<a href=${where.href} target="_blank" rel="noopener noreferrer nofollow" title=${where.href}>${label}</a>${host && html`<span class="faint"> (${host})</span>`}`;

const ELEMENTS = { "*": "em", _: "em", "**": "strong", __: "strong", "***": "strong", "~~": "del" };

/** Take a run of marks: it closes what the same run opened, opens something, or is text. Returns where it ends. */
function emphasis(text, at, nodes, open, write) {
  const length = run(text, at);
  const mark = text[at].repeat(length);
  const end = at + length;
  const [before, after] = [text[at - 1] || " ", text[end] || " "];
  // Within a word only ** and ~~ are marks: 3*4*5 and snake_case_name are none.
  const inWord = !["**", "***", "~~"].includes(mark);
  if (ELEMENTS[mark]) {
    if (!/\s/.test(before) && !(inWord && /[\p{L}\p{N}]/u.test(after))) {
      for (let back = open.length - 1; back >= 0; back -= 1) {
        if (open[back].mark !== mark) continue;
        const begin = open[back].at;
        if (begin === nodes.length - 1) break; // nothing is between
        const inner = nodes.splice(begin).slice(1).map((one) => (one?.mark ? one.mark : one));
        open.length = back;
        nodes.push(html`<${ELEMENTS[mark]}>${inner}<//>`);
        return end;
      }
    }
    if (open.length < MOST_OPEN && !/\s/.test(after) && !(inWord && /[\p{L}\p{N}]/u.test(before))) {
      open.push({ mark, at: nodes.length });
      nodes.push({ mark });
      return end;
    }
  }
  write(mark);
  return end;
}
