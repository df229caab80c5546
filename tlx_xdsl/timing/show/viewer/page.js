// The panels around the canvas, and what the user does.

const said = document.getElementById("said"), tip = document.getElementById("tip");
function by(id) { return document.getElementById(id); }
function made(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}
function titleOf(one) { return [one.json.configuration, one.json.origin].filter(Boolean).join(", ").replace(/^./, (first) => first.toUpperCase()); }
function baseName(path) { return path.split(/[\\/]/).at(-1); }
function lineText(line) {
  const at = line.lastIndexOf(":");
  return (held.sources[line.slice(0, at)]?.[line.slice(at + 1)] ?? "").trim();
}
function shortLine(line) { return baseName(line); }

// Words about spans ---------------------------------------------------------------------------------------------------

function about({ one, span }) {
  const long = one.end[span] - one.start[span], track = one.tracks[one.track[span]], line = placeOf(one, span);
  const clock = duration(long, one.json.hertz);
  const parts = [`${cycles(long)} ${one.json.unit}${clock ? ` (${clock})` : ""}, from ${cycles(one.start[span])} to ${cycles(one.end[span])}`];
  parts.push(`${track.name}, ${track.group}${all.length > 1 ? `, ${titleOf(one)}` : ""}`);
  if (one.cause[span]) parts.push(`${one.kind[span] === "wait" ? "ended by" : "because of"}: ${one.cause[span]}`);
  if (line !== null) parts.push(`${shortLine(line)} ${lineText(line)}`.trim());
  if (one.critical.has(span)) parts.push("on the critical path");
  return { name: one.name[span] || KINDS[one.kind[span]], rest: parts };
}
function say(found) {
  said.replaceChildren();
  if (!found) {
    said.append(made("span", state.line === null ? "Point at a span, or move to it by the arrow keys." : `Highlighted: ${shortLine(state.line)} ${lineText(state.line)}`, "faint"));
    return;
  }
  const words = about(found);
  said.append(made("b", words.name), `: ${words.rest.join("; ")}`);
}
function showTip(event, found) {
  tip.hidden = !found;
  if (!found) return;
  const words = about(found);
  tip.replaceChildren(made("b", words.name), ...words.rest.map((each) => made("div", each)));
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 10) : event.clientY + 18}px`;
}

// What is chosen ------------------------------------------------------------------------------------------------------

function pressed() {
  for (const button of document.querySelectorAll("[data-line]")) button.setAttribute("aria-pressed", String(button.dataset.line === state.line));
  by("critical").setAttribute("aria-pressed", String(state.critical));
  by("pair").setAttribute("aria-pressed", String(state.paired));
  by("fold").setAttribute("aria-pressed", String(state.folded.size > 0));
}
function choose(found, { lineToo = true } = {}) {
  state.chosen = found;
  if (lineToo) state.line = null;
  if (found) show(found);
  const line = found && placeOf(found.one, found.span);
  for (const row of document.querySelectorAll("#lines [data-line]")) {
    row.toggleAttribute("data-at", row.dataset.line === line);
    // Its own panel scrolls, not the page.
    if (row.dataset.line === line) {
      const panel = row.closest("aside");
      if (panel.scrollHeight > panel.clientHeight + 1 && getComputedStyle(panel).overflowY === "auto") {
        const box = row.getBoundingClientRect(), outer = panel.getBoundingClientRect();
        if (box.top < outer.top || box.bottom > outer.bottom) panel.scrollTop += box.top - outer.top - outer.height / 2;
      }
    }
  }
  say(found);
  pressed();
  redraw();
}
function chooseLine(line) {
  state.line = state.line === line ? null : line;
  state.chosen = null;
  say(null);
  pressed();
  redraw();
}
function unfold({ one, span }) {
  const found = placed.get(one.tracks[one.track[span]]);
  if (!found || found.part) return;
  state.folded.delete(found.row.heading.key);
  layOut();
}

// Panels --------------------------------------------------------------------------------------------------------------

function fillFacts() {
  for (const one of all) {
    const { json } = one, section = made("section"), head = made("h2");
    if (all.length > 1) head.append(made("span", String(one.number + 1), "number"));
    const clock = duration(json.launch_cycles ?? json.end, json.hertz);
    const whole = json.launch_cycles === null ? `${cycles(json.end)} ${json.unit} shown` : `${cycles(json.launch_cycles)} cycles for the launch`;
    head.append(`${titleOf(one)} on ${json.chip}: ${whole}${clock ? `, ${clock} at ${(json.hertz / 1e9).toFixed(2)} GHz` : ""}`);
    if (one.number > 0) {
      const own = json.launch_cycles ?? json.end, other = all[0].json.launch_cycles ?? all[0].json.end;
      if (other) head.append(` (${(own / other).toFixed(2)} x the time of 1)`);
    }
    section.append(head, made("p", json.sentences.join(" ")));
    if (json.notes.length) {
      const notes = made("details");
      notes.append(made("summary", { measured: "About the measurement", simulated: "About the steps" }[json.origin] ?? "What the model leaves out"), ...json.notes.map((each) => made("p", each, "faint")));
      section.append(notes);
    }
    by("facts").append(section);
  }
}
function fillLegend() {
  const names = { even: "phase", odd: "phase" };
  const there = new Set(all.flatMap((one) => one.colour.map((colour) => (names[colour] ?? colour))));
  for (const [kind, words] of Object.entries(KINDS)) {
    if (!there.has(kind)) continue;
    const item = made("li"), patch = made("i");
    patch.style.background = hatches[kind] ? `repeating-linear-gradient(135deg, var(--${kind}) 0 3px, var(--page) 3px 4px)` : `var(--${kind === "phase" ? "even" : kind})`;
    item.append(patch, words);
    by("legend").append(item);
  }
}
function meter(parts, whole) {
  return parts.map(([kind, part]) => {
    const bar = made("i");
    bar.style.width = `${Math.min(100, whole ? part / whole * 100 : 0)}%`;
    bar.style.background = `var(--${kind})`;
    return bar;
  });
}
function tagged(one) { return all.length > 1 ? made("span", String(one.number + 1), "number") : ""; }
function fillShares() {
  const groups = all.flatMap((one) => [...shares(one)].map(([group, sum]) => ({ one, group, ...sum })));
  const order = [...new Set(groups.map(({ group }) => group))];
  for (const { one, group, warps, kinds, total } of order.flatMap((name) => groups.filter((each) => each.group === name))) {
    const row = made("div", "", "share"), stack = made("div", "", "stack"), label = made("div");
    const there = ["work", "product", "issue", "copy", "store", "await", "wait"].filter((kind) => kinds[kind] >= 0.005 * total);
    const words = there.map((kind) => `${kind === "await" ? "wait for tensor cores" : kind} ${percent(kinds[kind], total)}`).join(", ");
    label.append(tagged(one), group, made("span", `, ${warps} ${warps === 1 ? "warp" : "warps"}: ${words}`, "many"));
    stack.append(...meter(there.map((kind) => [kind, kinds[kind]]), total));
    row.append(label, stack);
    by("shares").append(row);
  }
}
// Entries with a figure for each timeline, the largest first; a click shows the line.
function fillTable(place, entriesOf, keyOf, wordsOf, wholeOf) {
  const merged = new Map();
  for (const one of all) {
    for (const entry of entriesOf(one)) {
      const key = keyOf(entry);
      if (!merged.has(key)) merged.set(key, { ...entry, one, of: all.map(() => 0) });
      merged.get(key).of[one.number] += entry.cycles / (wholeOf(one) || 1);
    }
  }
  const most = ({ of }) => Math.max(...of);
  const long = [...merged.values()].filter((entry) => most(entry) >= 0.005).sort((a, b) => most(b) - most(a));
  for (const entry of long.slice(0, 6)) {
    const button = made("button"), figures = made("b");
    button.type = "button";
    for (const one of all) {
      const figure = made("div");
      figure.append(tagged(one), percent(entry.of[one.number], 1));
      figures.append(figure);
    }
    button.append(figures, made("span", wordsOf(entry)));
    if (entry.line !== null) button.dataset.line = entry.line;
    button.addEventListener("click", () => (entry.line === null ? choose({ one: entry.one, span: entry.first }) : chooseLine(entry.line)));
    place.append(button);
  }
  return long.length;
}
function whereOf({ line, name }) { return line === null ? name : `${shortLine(line)} ${lineText(line)}`; }
function fillWaits() {
  const found = fillTable(
    by("waits"), (one) => sums[one.number].waits, (wait) => `${wait.group}\n${wait.line ?? wait.name}\n${wait.cause}`,
    (wait) => `${wait.group}: ${whereOf(wait)}${wait.cause ? `, for ${wait.cause}` : ""}`, (one) => sums[one.number].total);
  if (!found) by("waits").append(made("p", "No warp waits for long.", "faint"));
}
function fillPath() {
  const paths = all.map(onPath);
  const found = fillTable(
    by("path"), (one) => paths[one.number].parts, (part) => `${part.kind}\n${part.line ?? part.name}`,
    (part) => `${KINDS[part.kind] ?? KINDS.phase}: ${whereOf(part)}`, (one) => paths[one.number].total);
  by("path").parentElement.hidden = !found;
}
// Half of the indentation: the panel is narrow, and the whole line is said beside it.
function narrowed(text) {
  const blanks = text.length - text.trimStart().length;
  return text.slice(Math.floor(blanks / 2));
}
function fillLines() {
  const most = Math.max(1e-9, ...sums.flatMap(({ lines, total }) => [...lines.values()].map(({ wait, work }) => (wait + work) / (total || 1))));
  const known = new Set(all.flatMap((one) => one.place.filter((place) => place >= 0).map((place) => one.lines[place])));
  for (const [file, lines] of Object.entries(held.sources)) {
    const head = made("div", baseName(file), "file");
    head.title = file;
    by("lines").append(head);
    let before = null;
    const indents = Object.values(lines).filter((text) => text.trim()).map((text) => text.search(/\S/));
    const indent = indents.length ? Math.min(...indents) : 0;
    for (const number of Object.keys(lines).map(Number).sort((a, b) => a - b)) {
      if (before !== null && number > before + 1) by("lines").append(made("div", "⋯", "plain"));
      before = number;
      const line = `${file}:${number}`, spans = known.has(line), row = made(spans ? "button" : "div", "", spans ? "" : "plain");
      row.append(made("i", String(number)), made("code", narrowed(lines[number].slice(indent))));
      if (spans) {
        const bars = made("span", "", "meter");
        const words = [];
        for (const one of all) {
          const sum = sums[one.number].lines.get(line) ?? { wait: 0, work: 0 }, whole = sums[one.number].total;
          const bar = made("u");
          bar.append(...meter([["work", sum.work], ["wait", sum.wait]], whole * most));
          bars.append(bar);
          words.push(`${all.length > 1 ? `${one.number + 1}: ` : ""}${percent(sum.wait, whole)} of the warps' time waits here, ${percent(sum.work, whole)} works`);
        }
        row.type = "button";
        row.dataset.line = line;
        row.title = [lines[number].trim(), ...words].join("\n");
        row.setAttribute("aria-label", `line ${number}: ${lines[number].trim()}; ${words.join("; ")}`);
        row.append(bars);
        row.addEventListener("click", () => chooseLine(line));
      }
      by("lines").append(row);
    }
  }
  if (!by("lines").childElementCount) by("lines").append(made("p", "No span has a line.", "faint"));
}

// Pointer -------------------------------------------------------------------------------------------------------------

const fingers = new Map();
let moved = 0, pinch = null;
function apart() {
  const [a, b] = [...fingers.values()].map(([px]) => px);
  return { far: Math.max(20, Math.abs(a - b)), centre: (a + b) / 2 };
}
function place(event) {
  const box = chart.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}
chart.addEventListener("wheel", (event) => {
  const [px] = place(event);
  const embedded = window !== window.top && document.activeElement !== chart && !event.ctrlKey && !event.metaKey;
  if (px < gutter || embedded) return;
  event.preventDefault();
  const pixels = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (sideways) {
    const by = (event.deltaX || event.deltaY) * pixels * (view.to - view.from) / (size.width - gutter);
    look(view.from + by, view.to + by);
  } else zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * pixels * 0.0025))), time(px));
}, { passive: false });
chart.addEventListener("pointerdown", (event) => {
  fingers.set(event.pointerId, place(event));
  moved = 0;
  pinch = fingers.size === 2 ? apart().far : null;
  try { chart.setPointerCapture(event.pointerId); } catch { /* The pointer is gone already. */ }
  tip.hidden = true;
});
chart.addEventListener("pointermove", (event) => {
  const now = place(event), before = fingers.get(event.pointerId);
  if (!before) {
    const { span, row } = under(...now);
    state.pointer = now[0];
    state.over = span;
    chart.style.cursor = span || row?.type === "group" ? "pointer" : "";
    if (span || !state.chosen) say(span ?? null);
    showTip(event, span);
    redraw();
    return;
  }
  fingers.set(event.pointerId, now);
  const scale = (view.to - view.from) / (size.width - gutter);
  moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
  if (fingers.size === 2) {
    const { far, centre } = apart();
    zoom(pinch / far, time(centre));
    pinch = far;
  } else if (moved > 4) {
    look(view.from - (now[0] - before[0]) * scale, view.to - (now[0] - before[0]) * scale);
    if (event.pointerType === "mouse") pane.scrollTop -= now[1] - before[1];
  }
});
function release(event) {
  fingers.delete(event.pointerId);
  pinch = null;
}
chart.addEventListener("pointercancel", release);
chart.addEventListener("pointerup", (event) => {
  const alone = fingers.size === 1;
  release(event);
  if (moved > 4 || !alone) return;
  const { row, span } = under(...place(event));
  if (row?.type === "group") {
    if (!state.folded.delete(row.heading.key)) state.folded.add(row.heading.key);
    layOut();
    pressed();
    redraw();
  } else choose(span);
});
chart.addEventListener("pointerleave", () => {
  state.pointer = state.over = null;
  tip.hidden = true;
  say(state.chosen);
  redraw();
});
chart.addEventListener("dblclick", (event) => {
  const { span } = under(...place(event));
  if (span) closer(span);
});

// Keys ----------------------------------------------------------------------------------------------------------------

function closer({ one, span }) {
  const margin = Math.max(4, (one.end[span] - one.start[span]) * 0.15);
  look(one.start[span] - margin, one.end[span] + margin);
}
function shown() { return rows.filter((row) => row.type === "track").flatMap((row) => row.parts.map((part) => part.track)); }
function beside(step) {
  if (!state.chosen) return shown().find((track) => track.spans.length);
  const { one, span } = state.chosen, tracks = shown(), at = tracks.indexOf(one.tracks[one.track[span]]);
  for (let index = at + step; index >= 0 && index < tracks.length; index += step) if (tracks[index].spans.length) return tracks[index];
  return null;
}
function nearest(track, at) {
  let best = track.spans[0], far = Infinity;
  for (const span of track.spans) {
    const off = Math.max(track.one.start[span] - at, at - track.one.end[span], 0);
    if (off < far) { far = off; best = span; }
  }
  return { one: track.one, span: best };
}
function move(key) {
  const chosen = state.chosen;
  if (!chosen || key === "ArrowUp" || key === "ArrowDown") {
    const track = beside(key === "ArrowUp" ? -1 : 1);
    const at = chosen ? (Math.max(chosen.one.start[chosen.span], view.from) + Math.min(chosen.one.end[chosen.span], view.to)) / 2 : view.from;
    return track ? nearest(track, at) : null;
  }
  const { spans, one } = chosen.one.tracks[chosen.one.track[chosen.span]];
  const next = spans[spans.indexOf(chosen.span) + (key === "ArrowLeft" ? -1 : 1)];
  return next === undefined ? null : { one, span: next };
}
const middle = () => (state.chosen ? (state.chosen.one.start[state.chosen.span] + state.chosen.one.end[state.chosen.span]) / 2 : (view.from + view.to) / 2);
const KEYS = {
  "+": () => zoom(0.7, middle()), "=": () => zoom(0.7, middle()), "-": () => zoom(1 / 0.7, middle()), Home: fit,
  End: () => {
    const one = all.reduce((last, each) => (each.last > last.last ? each : last));
    const span = numbered(one.end.length).reduce((last, each) => (one.end[each] > one.end[last] ? each : last), 0);
    if (one.end.length) { unfold({ one, span }); choose({ one, span }); }
  },
  Enter: () => { const line = state.chosen && placeOf(state.chosen.one, state.chosen.span); if (line) toLine(line); },
  Escape: () => { state.line = null; choose(null); },
  a: () => {
    const chosen = state.chosen, span = chosen ? chosen.one.after[chosen.span] : -1;
    if (span >= 0) { unfold({ one: chosen.one, span }); choose({ one: chosen.one, span }); }
  },
  f: () => state.chosen && closer(state.chosen), c: () => toggleCritical(), p: () => togglePair(), g: () => toggleFold(),
};
function toLine(line) {
  const row = [...document.querySelectorAll("#lines [data-line]")].find((each) => each.dataset.line === line);
  row?.focus();
}
chart.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key.startsWith("Arrow")) {
    const by = (view.to - view.from) * 0.2 * (key === "ArrowLeft" ? -1 : 1);
    if (event.shiftKey && (key === "ArrowLeft" || key === "ArrowRight")) look(view.from + by, view.to + by);
    else { const next = move(key); if (next) choose(next); }
  } else if (KEYS[key]) KEYS[key]();
  else return;
  event.preventDefault();
});

// Buttons, theme, size ------------------------------------------------------------------------------------------------

function toggleCritical() { state.critical = !state.critical; pressed(); redraw(); }
function togglePair() {
  if (all.length < 2) return;
  state.paired = !state.paired;
  state.folded.clear();
  measure();
  pressed();
  redraw();
}
function toggleFold() {
  const keys = headingsOf(state.paired).map((each) => each.key);
  if (state.folded.size) state.folded.clear(); else keys.forEach((key) => state.folded.add(key));
  layOut();
  pressed();
  redraw();
}
const dark = matchMedia("(prefers-color-scheme: dark)");
let theme = "system";
function setTheme(name) {
  theme = name;
  document.documentElement.dataset.theme = name === "system" ? (dark.matches ? "dark" : "light") : name;
  by("theme").textContent = `Theme: ${name}`;
  readColours();
  redraw();
}
by("zoom-in").addEventListener("click", () => zoom(0.7, middle()));
by("zoom-out").addEventListener("click", () => zoom(1 / 0.7, middle()));
by("fit").addEventListener("click", fit);
by("critical").addEventListener("click", toggleCritical);
by("pair").addEventListener("click", togglePair);
by("fold").addEventListener("click", toggleFold);
by("theme").addEventListener("click", () => setTheme({ system: dark.matches ? "light" : "dark", light: dark.matches ? "dark" : "system", dark: dark.matches ? "system" : "light" }[theme]));
dark.addEventListener("change", () => setTheme(theme));
pane.addEventListener("scroll", redraw, { passive: true });

by("critical").hidden = all.every((one) => !one.path.length);
by("pair").hidden = all.length < 2;
// A prediction and a measurement of the same launch are compared row by row.
state.paired = all.length > 1 && new Set(all.map((one) => one.json.origin)).size > 1;
const headings = headingsOf(state.paired);
headings.reduce((count, heading) => {
  if (count > MOST_TRACKS) state.folded.add(heading.key);
  return count + heading.rows.size;
}, 0);
setTheme("system");
fillFacts();
fillLegend();
fillShares();
fillWaits();
fillPath();
fillLines();
measure();
new ResizeObserver(() => { measure(); draw(); }).observe(pane);
fit();
say(null);
pressed();
chart.timeline = { all, view, state, draw, choose, under, rowOf, x, pane };
