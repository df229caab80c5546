// The timelines as they are in the page, and what is found out about them once: lanes, rows, sums.

const held = JSON.parse(document.getElementById("timelines").textContent);
const KINDS = {
  work: "computes or moves", wait: "waits", await: "waits for a tensor core", issue: "issues", copy: "copy under way", product: "tensor core at work",
  store: "store under way", phase: "phase of a barrier", buffer: "slot in use",
};
const MOST_LANES = 6;
const MOST_TRACKS = 60;  // Of more, groups are folded at the start.

function numbered(count) { return Array.from({ length: count }, (_, index) => index); }

// Spans of a track that overlap go to lanes below each other. `reach` is the largest end so far, so that the first span
// that is seen is found by bisection even where spans overlap within the last lane.
function lanesOf(spans, { start, end, kind, lane: numbers }, warp) {
  const lanes = [];
  for (const span of spans) {
    // What a warp issues is short, and is drawn over what it does besides.
    let lane = warp && kind[span] === "issue" ? lanes[0] : lanes.find((each) => each.last <= start[span] + 1e-9);
    if (!lane && lanes.length < MOST_LANES) lanes.push(lane = { spans: [], reach: [], last: 0 });
    lane ??= lanes.reduce((first, each) => (each.last < first.last ? each : first));
    lane.spans.push(span);
    numbers[span] = lanes.indexOf(lane);
    lane.reach.push(lane.last = Math.max(lane.last, end[span]));
  }
  return lanes;
}

function read(json, number) {
  const { spans, strings, places } = json;
  const texts = (column) => column.map((each) => strings[each]);
  const one = {
    number, json, start: spans.start, end: spans.end, track: spans.track, place: spans.place, after: spans.after,
    kind: texts(spans.kind), name: texts(spans.name), cause: texts(spans.cause),
    critical: new Set(json.critical), path: json.critical, lane: [],
    lines: places.map(([file, line]) => `${file}:${line}`),
  };
  one.last = one.end.reduce((last, each) => Math.max(last, each), json.end);
  const on = json.tracks.map(() => []);
  numbered(one.start.length).sort((a, b) => one.start[a] - one.start[b] || one.end[b] - one.end[a])
    .forEach((span) => on[one.track[span]].push(span));
  one.tracks = json.tracks.map(([name, kind, group], index) => (
    { one, index, name, kind, group, spans: on[index], lanes: lanesOf(on[index], one, kind === "warp") }));
  one.colour = one.kind.map((kind, span) => (kind === "wait" && one.kind[one.after[span]] === "product" ? "await" : kind));
  for (const track of one.tracks) {
    if (track.kind !== "barrier") continue;
    track.spans.forEach((span, index) => { if (one.kind[span] === "phase") one.colour[span] = index % 2 ? "odd" : "even"; });
  }
  return one;
}

const all = held.timelines.map(read);
const ends = Math.max(1, ...all.map((one) => one.last));
const hertz = all.find((one) => one.json.hertz)?.json.hertz ?? null;

function cycles(value) {
  value ||= 0;  // Of zeros the one without a sign.
  return value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) < 10 ? 1 : 0 });
}
function duration(value, clock) {
  const long = (value || 0) / clock * 1e6, unit = long >= 1000 ? "ms" : "us";
  return clock ? `${(unit === "ms" ? long / 1000 : long).toLocaleString("en-US", { maximumSignificantDigits: 3 })} ${unit}` : "";
}
function percent(part, whole) {
  const share = whole ? part / whole * 100 : 0;
  return `${share.toLocaleString("en-US", { maximumFractionDigits: share && share < 10 ? 1 : 0 })} %`;
}
function placeOf(one, span) { return one.place[span] < 0 ? null : one.lines[one.place[span]]; }

// What the warps of a group do: cycles of each kind over all of its warps.
function shares(one) {
  const groups = new Map();
  for (const track of one.tracks) {
    if (track.kind !== "warp") continue;
    if (!groups.has(track.group)) groups.set(track.group, { warps: 0, kinds: {}, total: 0 });
    const group = groups.get(track.group);
    group.warps += 1;
    group.total += one.json.end;
    for (const span of track.spans) {
      const kind = one.colour[span];
      group.kinds[kind] = (group.kinds[kind] ?? 0) + one.end[span] - one.start[span];
    }
  }
  return groups;
}

// Cycles that warps wait or work at each line, and the waits summed by line and cause.
function byLine(one) {
  const lines = new Map(), waits = new Map();
  let total = 0;
  for (const track of one.tracks) {
    if (track.kind !== "warp") continue;
    total += one.json.end;
    for (const span of track.spans) {
      const line = placeOf(one, span), long = one.end[span] - one.start[span], waiting = one.kind[span] === "wait";
      if (line !== null) {
        if (!lines.has(line)) lines.set(line, { wait: 0, work: 0 });
        lines.get(line)[waiting ? "wait" : "work"] += long;
      }
      if (!waiting) continue;
      const key = `${track.group}\n${line ?? one.name[span]}\n${one.cause[span]}`;
      if (!waits.has(key)) waits.set(key, { group: track.group, line, name: one.name[span], cause: one.cause[span], cycles: 0, first: span });
      waits.get(key).cycles += long;
    }
  }
  return { lines, total, waits: [...waits.values()].sort((a, b) => b.cycles - a.cycles) };
}
const sums = all.map(byLine);

// What the critical path is made of: cycles by kind and line, each cycle once.
function onPath(one) {
  const parts = new Map();
  let until = 0, total = 0;
  for (const span of [...one.path].sort((a, b) => one.end[a] - one.end[b])) {
    const long = Math.max(0, one.end[span] - Math.max(one.start[span], until));
    until = Math.max(until, one.end[span]);
    const line = placeOf(one, span), kind = one.colour[span], key = `${kind}\n${line ?? one.name[span]}`;
    if (!parts.has(key)) parts.set(key, { kind, line, name: one.name[span], cycles: 0, first: span });
    parts.get(key).cycles += long;
    total += long;
  }
  return { total, parts: [...parts.values()] };
}

// Rows as they are drawn: headings of timelines and groups, and tracks, with a part for each timeline where they are paired.
function headingsOf(paired) {
  const headings = [];
  const add = (key, label, one) => {
    let heading = headings.find((each) => each.key === key);
    if (!heading) headings.push(heading = { key, label, one, rows: new Map() });
    return heading;
  };
  for (const one of all) {
    for (const track of one.tracks) {
      const heading = add(paired ? track.group : `${one.number}\n${track.group}`, track.group, one);
      const key = `${track.kind}\n${track.name}`;
      if (!heading.rows.has(key)) heading.rows.set(key, []);
      heading.rows.get(key).push(track);
    }
  }
  return headings;
}
