// The canvas: what is in view is drawn, and what is under the pointer is found.

const chart = document.getElementById("chart"), pane = document.getElementById("pane"), tall = document.getElementById("tall");
const pen = chart.getContext("2d");
const FONT = '11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace';
const AXIS = hertz ? 34 : 22, HEADING = 20, GAP = 3;
const view = { from: 0, to: ends * 1.02 };
const state = { paired: false, folded: new Set(), chosen: null, over: null, line: null, critical: false, pointer: null };
let rows = [], placed = new Map(), levels = {}, size = { width: 0, height: 0 }, gutter = 0, letter = 6.6, colours = {}, hatches = {}, asked = 0;

function narrow() { return size.width < 560; }
function x(time) { return gutter + (time - view.from) / (view.to - view.from) * (size.width - gutter); }
function time(at) { return view.from + (at - gutter) / (size.width - gutter) * (view.to - view.from); }

function levelsOf(text) {
  const digits = text.length === 4 ? [...text.slice(1)].map((digit) => digit + digit) : text.match(/[0-9a-f]{2}/gi);
  return digits.map((digit) => parseInt(digit, 16));
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  colours = {};
  for (const name of ["page", "panel", "ink", "faint", "line", "chosen", "lit", "on", "path", "work", "wait", "await", "issue", "copy",
    "product", "store", "even", "odd", "buffer"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
  colours.phase = colours.even;
  levels = Object.fromEntries(Object.entries(colours).map(([name, text]) => [name, levelsOf(text)]));
  hatches = { wait: hatch(colours.wait), await: hatch(colours.await) };
}
function hatch(colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const brush = tile.getContext("2d");
  brush.fillStyle = colour;
  brush.fillRect(0, 0, 6, 6);
  brush.strokeStyle = colours.page;
  brush.globalAlpha = 0.55;
  brush.beginPath();
  for (const shift of [-6, 0, 6]) { brush.moveTo(shift, 6); brush.lineTo(shift + 6, 0); }
  brush.stroke();
  return pen.createPattern(tile, "repeat");
}

// Where each row begins, below the axis.
function layOut() {
  rows = [];
  let y = AXIS;
  const add = (row, height) => { rows.push({ ...row, y, height }); y += height; };
  const headings = headingsOf(state.paired);
  const above = narrow() ? 13 : 0;
  headings.forEach((heading, index) => {
    if (!state.paired && all.length > 1 && heading.one !== headings[index - 1]?.one) add({ type: "title", one: heading.one }, HEADING + 4);
    const folded = state.folded.has(heading.key);
    add({ type: "group", heading, folded }, HEADING);
    if (folded) return;
    for (const tracks of heading.rows.values()) {
      const parts = [];
      let inside = above + 1;
      for (const track of tracks) {
        const count = Math.max(1, track.lanes.length), flat = track.kind === "barrier" || track.kind === "buffer";
        const lane = count > 2 ? 8 : count > 1 ? 10 : tracks.length > 1 ? 13 : flat ? 14 : 17;
        parts.push({ track, top: inside, lane, height: lane * count });
        inside += lane * count + 1;
      }
      add({ type: "track", heading, parts, label: tracks[0].name, above }, inside + GAP);
    }
  });
  placed = new Map();
  for (const row of rows) {
    if (row.type === "track") for (const part of row.parts) placed.set(part.track, { row, part });
    else if (row.folded) for (const tracks of row.heading.rows.values()) for (const track of tracks) placed.set(track, { row });
  }
  size.content = y + 8;
  tall.style.height = `${size.content}px`;
}

function measure() {
  const width = pane.clientWidth, height = pane.clientHeight, dots = window.devicePixelRatio || 1;
  size = { ...size, width, height };
  chart.style.width = `${width}px`;
  chart.style.height = `${height}px`;
  chart.width = Math.max(1, Math.round(width * dots));
  chart.height = Math.max(1, Math.round(height * dots));
  strip.canvas.width = chart.width;
  strip.canvas.height = 1;
  strip.pen = strip.canvas.getContext("2d", { willReadFrequently: true });
  strip.image = strip.pen.createImageData(chart.width, 1);
  strip.sums = new Float32Array(chart.width * 4);
  pen.font = FONT;
  letter = pen.measureText("mmmmmmmmmm").width / 10;
  const longest = Math.max(...all.flatMap((one) => one.tracks.flatMap((track) => [track.name.length, track.group.length + 3])), 4);
  gutter = narrow() ? (state.paired ? 12 : 0) : Math.min(224, longest * letter + (state.paired ? 40 : 26));
  layOut();
}

function fitted(text, width) {
  const letters = Math.floor(width / letter);
  return text.length <= letters ? text : letters < 3 ? "" : `${text.slice(0, letters - 1)}…`;
}

function step(width) {
  const least = (view.to - view.from) / Math.max(2, width / 90);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
}

function lit(one, span) {
  if (state.line !== null) return placeOf(one, span) === state.line;
  return !state.critical || one.critical.has(span);
}
function choosy() { return state.line !== null || state.critical; }

// The first span of a lane that ends after a time.
function first(lane, from) {
  let low = 0, high = lane.spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.reach[middle] < from) low = middle + 1; else high = middle;
  }
  return low;
}

// Spans that are thinner are summed up for each pixel, each by its share of the pixel.
const THIN = 4;
const strip = { canvas: document.createElement("canvas"), pen: null, sums: new Float32Array(0), image: null };
function drawStrip(top, height) {
  const { sums, image } = strip, bytes = image.data;
  for (let at = 0; at < sums.length; at += 4) {
    const share = sums[at + 3];
    bytes[at] = share && sums[at] / share;
    bytes[at + 1] = share && sums[at + 1] / share;
    bytes[at + 2] = share && sums[at + 2] / share;
    // A little in a pixel is seen, too.
    bytes[at + 3] = share && 255 * Math.min(1, Math.max(0.35, share));
  }
  strip.pen.putImageData(image, 0, 0);
  pen.drawImage(strip.canvas, 0, 0, strip.canvas.width, 1, 0, top, size.width, height);
  sums.fill(0);
}
function addThin(colour, left, right) {
  const { sums } = strip, [red, green, blue] = levels[colour], most = sums.length / 4;
  for (let column = Math.max(0, Math.floor(left)); column < Math.min(most, right); column += 1) {
    const share = Math.min(column + 1, right) - Math.max(column, left), at = column * 4;
    sums[at] += red * share;
    sums[at + 1] += green * share;
    sums[at + 2] += blue * share;
    sums[at + 3] += share;
  }
}

function drawLane(one, lane, top, height, only) {
  const scale = (size.width - gutter) / (view.to - view.from), least = letter * 3 + 4, dots = chart.width / size.width;
  let thin = false;
  for (let at = first(lane, view.from); at < lane.spans.length; at += 1) {
    const span = lane.spans[at];
    if (one.start[span] > view.to) break;
    if (only !== null && lit(one, span) !== only) continue;
    const left = Math.max(gutter - 1, gutter + (one.start[span] - view.from) * scale);
    const right = Math.min(size.width + 1, gutter + (one.end[span] - view.from) * scale);
    const colour = one.colour[span], width = right - left;
    if (width < THIN) {
      // A highlighted span is seen however short it is.
      addThin(colour, left * dots, Math.max(right, left + (only ? 1 : 0.02)) * dots);
      thin = true;
      continue;
    }
    pen.fillStyle = (width > 5 && hatches[colour]) || colours[colour];
    pen.fillRect(left, top, width - 0.7, height - 1);
    if (width > least && height >= 12) {
      const text = fitted(one.name[span], width - 6);
      if (!text) continue;
      if (hatches[colour]) { pen.fillStyle = colours[colour]; pen.fillRect(left + 2, top + 1, text.length * letter + 3, height - 3); }
      pen.fillStyle = colour === "issue" ? colours.page : colours.on;
      pen.fillText(text, left + 3, top + height / 2);
    }
  }
  if (thin) drawStrip(top, height - 1);
}

function drawTracks(only) {
  for (const row of rows) {
    const y = row.y - pane.scrollTop;
    if (y + row.height < AXIS || y > size.height) continue;
    if (row.type === "track") {
      for (const { track, top, lane } of row.parts) {
        track.lanes.forEach((each, index) => drawLane(track.one, each, y + top + index * lane, lane, only));
      }
    } else if (row.type === "group" && row.folded) {
      for (const tracks of row.heading.rows.values()) {
        for (const track of tracks) for (const each of track.lanes) drawLane(track.one, each, y + 6, 9, only);
      }
    }
  }
}

// Where a span is drawn, folded or not.
function rowOf(one, span) {
  const track = one.tracks[one.track[span]], found = placed.get(track);
  if (!found) return null;
  const { row, part } = found;
  if (!part) return { row, y: row.y + 10, height: 9 };
  return { row, part, y: row.y + part.top + (one.lane[span] + 0.5) * part.lane, height: part.lane };
}

function drawLink(one, from, to) {
  const a = rowOf(one, from), b = rowOf(one, to);
  if (!a || !b) return;
  const x1 = x(one.end[from]), y1 = a.y - pane.scrollTop, y2 = b.y - pane.scrollTop;
  const x2 = x(one.start[to] >= one.end[from] - 0.5 ? one.start[to] : Math.min(one.end[from], one.end[to]));
  if (Math.max(x1, x2) < gutter || Math.min(x1, x2) > size.width) return;
  pen.beginPath();
  pen.moveTo(x1, y1);
  const bend = Math.max(8, Math.abs(x2 - x1) / 2);
  pen.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(x2 + 1, y2);
  pen.lineTo(x2 - 6, y2 - 3.5);
  pen.lineTo(x2 - 6, y2 + 3.5);
  pen.fill();
}

function drawLinks() {
  pen.lineWidth = 1.5;
  if (state.critical) {
    pen.strokeStyle = pen.fillStyle = colours.path;
    for (const one of all) {
      let drawn = -10;
      for (let at = 1; at < one.path.length; at += 1) {
        const middle = x(one.end[one.path[at - 1]]);
        // Where arrows would cover each other, one stands for all.
        if (middle < gutter - 20 || middle > size.width + 20 || middle - drawn < 5) continue;
        if (one.track[one.path[at - 1]] !== one.track[one.path[at]]) { drawLink(one, one.path[at - 1], one.path[at]); drawn = middle; }
      }
    }
  }
  const chosen = state.chosen;
  if (!chosen) return;
  const { one, span } = chosen, at = rowOf(one, span);
  pen.strokeStyle = pen.fillStyle = colours.chosen;
  if (one.after[span] >= 0) drawLink(one, one.after[span], span);
  if (!at) return;
  pen.lineWidth = 2;
  pen.strokeRect(x(one.start[span]) - 1, at.y - pane.scrollTop - at.height / 2 - 1, Math.max(3, x(one.end[span]) - x(one.start[span]) + 2), at.height + 1);
}

function drawNames() {
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, gutter, size.height);
  for (const row of rows) {
    const y = row.y - pane.scrollTop;
    if (y + row.height < AXIS || y > size.height) continue;
    if (row.type === "title") {
      pen.fillStyle = colours.panel;
      pen.fillRect(0, y, size.width, row.height - 2);
      pen.fillStyle = colours.ink;
      pen.font = `bold ${FONT}`;
      pen.fillText(fitted(`${row.one.number + 1}  ${titleOf(row.one)}`, size.width - 16), 8, y + row.height / 2 - 1);
      pen.font = FONT;
    } else if (row.type === "group") {
      pen.fillStyle = colours.ink;
      pen.font = `bold ${FONT}`;
      pen.fillText(fitted(`${row.folded ? "▸" : "▾"} ${row.heading.label}`, (narrow() ? size.width : gutter) - 8), 6, y + 11);
      pen.font = FONT;
    } else {
      pen.fillStyle = colours.faint;
      pen.fillText(fitted(row.label, (narrow() ? size.width : gutter) - (state.paired ? 34 : 22)), narrow() ? gutter + 4 : 16, y + (row.above ? 7 : row.height / 2 - 1));
      if (state.paired) {
        for (const part of row.parts) pen.fillText(String(part.track.one.number + 1), narrow() ? 1 : gutter - 12, y + part.top + part.height / 2);
      }
    }
  }
}

function drawAxis() {
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, size.width, AXIS);
  const each = step(size.width - gutter);
  pen.textAlign = "left";
  for (let at = Math.ceil(view.from / each) * each; at <= view.to; at += each) {
    const left = x(at);
    if (left < gutter - 1) continue;
    pen.fillStyle = colours.ink;
    const whole = left + letter * Math.max(cycles(at).length, duration(at, hertz).length) < size.width;
    if (whole) pen.fillText(cycles(at), left + 3, 9);
    pen.fillStyle = colours.faint;
    if (hertz && whole) pen.fillText(duration(at, hertz), left + 3, 23);
    pen.fillRect(left, 2, 1, AXIS - 4);
  }
  pen.fillStyle = colours.faint;
  if (!narrow()) {
    pen.fillText(all[0].json.unit, 8, 9);
    if (hertz) pen.fillText(fitted(`at ${(hertz / 1e9).toFixed(2)} GHz`, gutter - 10), 8, 23);
  }
  pen.fillStyle = colours.line;
  pen.fillRect(0, AXIS - 1, size.width, 1);
}

function drawGrid() {
  pen.fillStyle = colours.line;
  const each = step(size.width - gutter);
  for (let at = Math.ceil(view.from / each) * each; at <= view.to; at += each) pen.fillRect(x(at), AXIS, 1, size.height);
  for (const row of rows) if (row.type === "group") pen.fillRect(0, row.y - pane.scrollTop, size.width, 1);
}

function drawEnds() {
  pen.strokeStyle = pen.fillStyle = colours.ink;
  pen.setLineDash([4, 3]);
  pen.lineWidth = 1;
  for (const one of all) {
    const left = x(one.json.end);
    if (left < gutter || left > size.width) continue;
    const mine = rows.filter((row) => state.paired || (row.one ?? row.heading?.one) === one);
    if (!mine.length) continue;
    const top = Math.max(AXIS, mine[0].y - pane.scrollTop), bottom = mine.at(-1).y + mine.at(-1).height - pane.scrollTop;
    pen.beginPath();
    pen.moveTo(left, top);
    pen.lineTo(left, bottom);
    pen.stroke();
    if (state.paired && bottom > top) pen.fillText(String(one.number + 1), left + 2, AXIS + 8 + 11 * one.number);
  }
  pen.setLineDash([]);
  if (state.pointer !== null && state.pointer >= gutter) {
    pen.fillStyle = colours.faint;
    pen.fillRect(state.pointer, AXIS, 1, size.height);
  }
}

function draw() {
  asked = 0;
  const dots = window.devicePixelRatio || 1;
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.font = FONT;
  pen.textBaseline = "middle";
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, size.width, size.height);
  drawGrid();
  pen.save();
  pen.beginPath();
  pen.rect(gutter, AXIS, size.width - gutter, size.height);
  pen.clip();
  if (choosy()) {
    pen.globalAlpha = 0.22;
    drawTracks(false);
    pen.globalAlpha = 1;
    drawTracks(true);
  } else drawTracks(null);
  drawEnds();
  drawLinks();
  pen.restore();
  drawNames();
  drawAxis();
}
function redraw() { asked ||= requestAnimationFrame(draw); }

// What is at a point of the canvas: a row, and the span there or within 3 pixels.
function under(px, py) {
  const y = py + pane.scrollTop;
  const row = py < AXIS ? null : rows.find((each) => y >= each.y && y < each.y + each.height);
  if (!row || px < gutter || row.type !== "track") return { row, span: null };
  const part = row.parts.find((each) => y >= row.y + each.top && y < row.y + each.top + each.height + 1);
  const lane = part?.track.lanes[Math.min(part.track.lanes.length - 1, Math.floor((y - row.y - part.top) / part.lane))];
  if (!lane) return { row, span: null };
  const { one } = part.track, at = time(px), slack = 3 * (view.to - view.from) / (size.width - gutter);
  let best = null, nearest = slack;
  for (let index = first(lane, at - slack); index < lane.spans.length; index += 1) {
    const span = lane.spans[index];
    if (one.start[span] > at + slack) break;
    const far = Math.max(one.start[span] - at, at - one.end[span], 0);
    if (far < nearest || (far === nearest && best !== null && one.end[span] - one.start[span] < one.end[best] - one.start[best])) {
      best = span;
      nearest = far;
    }
  }
  return { row, span: best === null ? null : { one, span: best } };
}

function look(from, to) {
  const least = Math.min(16, ends), width = Math.min(Math.max(to - from, least), ends * 1.1);
  const middle = (from + to) / 2;
  const left = Math.min(Math.max(middle - width / 2, -0.05 * ends), ends * 1.05 - width * 0.5);
  view.from = left;
  view.to = left + width;
  redraw();
}
function zoom(factor, around) {
  const centre = Math.min(Math.max(around, view.from), view.to);
  const width = Math.min(Math.max((view.to - view.from) * factor, Math.min(16, ends)), ends * 1.1);
  const share = (centre - view.from) / (view.to - view.from);
  look(centre - share * width, centre + (1 - share) * width);
}
function fit() { look(-0.01 * ends, ends * 1.02); }
function show({ one, span }) {
  const from = one.start[span], to = one.end[span], width = view.to - view.from;
  if (to < view.from + width * 0.02 || from > view.to - width * 0.02) look((from + to) / 2 - width / 2, (from + to) / 2 + width / 2);
  const at = rowOf(one, span);
  if (at && (at.y - AXIS - 20 < pane.scrollTop || at.y + 20 > pane.scrollTop + size.height)) pane.scrollTop = at.y - size.height / 2;
}
