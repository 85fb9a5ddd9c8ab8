// The script of a timeline's page. Each row is a canvas of its own, so that the page's height has no limit.
#pragma once

namespace sluice::detail::drawing {

/// The first part: data, rows, drawing. No text of the data becomes HTML: it goes through textContent.
inline constexpr const char* html_script_view = R"js(
'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const kinds = ['compute', 'copy', 'source', 'wait'];
const element = (tag, css, text) => {
  const made = document.createElement(tag);
  if (css) made.className = css;
  if (text !== undefined) made.textContent = text;
  return made;
};
const trimmed = (value, decimals) => String(+value.toFixed(decimals));
const timeText = us => {
  const size = Math.abs(us);
  if (size < 1e3) return trimmed(us, 3) + ' \u00b5s';
  return size < 1e6 ? trimmed(us / 1e3, 4) + ' ms' : trimmed(us / 1e6, 5) + ' s';
};

// Rows, with their spans by lane.
const view = document.getElementById('view');
const rows = [], counters = [], edges = [], used = new Map();
let first = Infinity, last = -Infinity, crowded = false;
for (const timeline of data.timelines) {
  const heading = document.querySelector('h1').textContent;
  const repeats = data.timelines.length === 1 && timeline.title === heading;
  if (timeline.title && !repeats) view.append(element('h2', '', timeline.title));
  const firstRow = rows.length;
  timeline.units.forEach((unit, u) => {
    if (unit.name) view.append(element('div', 'unit', unit.name));
    unit.rows.forEach((source, r) => {
      const row = {name: source.name, unit: unit.name, crowded: source.crowded, lanes: []};
      for (let i = 0; i < source.lanes; ++i) row.lanes.push([]);
      for (let i = 0; i < source.spans.length; i += 5) {
        const [lane, batch, kind, begin, duration] = source.spans.slice(i, i + 5);
        row.lanes[lane].push({batch, kind, begin, end: begin + duration});
        first = Math.min(first, begin);
        last = Math.max(last, begin + duration);
        if (!used.has(kind)) used.set(kind, batch);
      }
      crowded = crowded || source.crowded;
      row.laneHeight = source.lanes === 1 ? 18 : Math.max(4, Math.min(14, 56 / source.lanes));
      row.height = source.lanes * (row.laneHeight + 1) + 5;
      row.canvas = element('canvas');
      row.canvas.style.height = row.height + 'px';
      row.canvas.setAttribute('role', 'img');
      row.canvas.setAttribute('aria-label', source.name + ': ' + source.spans.length / 5 + ' spans');
      const label = element('span', '', source.name);
      label.title = source.name;
      const apart = !unit.name && u > 0 && r === 0; // from the unit above
      const line = element('div', 'row' + (rows.length % 2 ? '' : ' stripe') + (apart ? ' apart' : ''));
      line.append(label, row.canvas);
      view.append(line);
      rows.push(row);
    });
  });
  addEdges(timeline, firstRow);
  addCounters(timeline);
}
if (first > last) {
  for (const {steps} of counters) {
    for (const {time} of steps) { first = Math.min(first, time); last = Math.max(last, time); }
  }
}
if (first > last) { first = 0; last = 1; }
if (last - first < 1e-3) last = first + Math.max(1e-3, Math.abs(first) * 1e-11);
scaleCounters();
const axis = element('canvas'), axisLine = element('div', 'row axis'), axisUnit = element('span', '', '');
axis.style.height = '26px';
axisLine.append(axisUnit, axis);
view.append(axisLine);
if (crowded) view.append(element('p', 'note',
  'More than 100 spans of a row overlap; in its last lane spans may cover each other.'));

let begin = first, end = last;
let colours = {}, patterns = [];
const context = (canvas, height) => {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const draw = canvas.getContext('2d');
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  draw.clearRect(0, 0, width, height);
  return draw;
};
const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['fg', 'muted', 'grid', 'axis', 'merged', 'line'])
    colours[name] = style.getPropertyValue('--' + name).trim();
  patterns = data.palette.map(colour => {
    const tile = element('canvas'), size = 8, scale = 4;
    tile.width = tile.height = size * scale;
    const draw = tile.getContext('2d');
    draw.scale(scale, scale);
    draw.fillStyle = colour;
    draw.fillRect(0, 0, size, size);
    draw.strokeStyle = 'rgba(255,255,255,.6)';
    draw.lineWidth = 2.4;
    draw.beginPath();
    for (const shift of [-size, 0, size]) {
      draw.moveTo(shift - 1, size + 1);
      draw.lineTo(shift + size + 1, -1);
    }
    draw.stroke();
    const pattern = draw.createPattern(tile, 'repeat');
    pattern.setTransform(new DOMMatrix().scale(1 / scale));
    return pattern;
  });
};
const drawBox = (draw, batch, kind, x, y, width, height) => {
  const colour = batch % data.palette.length;
  draw.fillStyle = kind === 1 ? patterns[colour] : data.palette[colour];
  draw.globalAlpha = kind === 2 ? .4 : kind === 3 ? (width < 3 ? .3 : .12) : 1;
  draw.fillRect(x, y, width, height);
  draw.globalAlpha = 1;
  if (kind === 3 && width >= 3) {
    draw.strokeStyle = data.palette[colour];
    draw.setLineDash([3, 2]);
    draw.strokeRect(x + .5, y + .5, width - 1, height - 1);
    draw.setLineDash([]);
  }
};
const drawNumber = (draw, batch, kind, x, width, y, height) => {
  const text = String(batch);
  if (height < 11 || width < text.length * 6.5 + 2) return;
  const colour = batch % data.palette.length;
  if (kind === 1) {
    draw.strokeStyle = data.palette[colour];
    draw.lineWidth = 4;
    draw.strokeText(text, x + width / 2, y + height / 2 + .5);
    draw.lineWidth = 1;
  }
  draw.fillStyle = kind > 1 ? colours.fg : colour === data.dark ? '#fff' : '#111';
  draw.fillText(text, x + width / 2, y + height / 2 + .5);
};
// The first span of a lane that ends after `time`. In a crowded row's last lane ends are in no order.
const firstAfter = (row, lane, time) => {
  if (row.crowded && lane === row.lanes[row.lanes.length - 1]) return 0;
  let low = 0, high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane[middle].end < time) low = middle + 1; else high = middle;
  }
  return low;
};
const drawRow = (row, ticks) => {
  const draw = context(row.canvas, row.height), width = row.canvas.clientWidth;
  const scale = width / (end - begin);
  draw.font = "11px system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif";
  draw.textAlign = 'center';
  draw.textBaseline = 'middle';
  draw.lineJoin = 'round';
  draw.fillStyle = colours.grid;
  for (const tick of ticks) draw.fillRect(Math.round((tick - begin) * scale), 0, 1, row.height);
  row.lanes.forEach((lane, number) => {
    const y = 3 + number * (row.laneHeight + 1);
    // Neighbours too narrow to see are one grey block.
    let run = null;
    const flush = () => {
      if (run && run.spans === 1) {
        drawBox(draw, run.batch, run.kind, run.left, y, .5, row.laneHeight);
      } else if (run) {
        draw.fillStyle = colours.merged;
        draw.fillRect(run.left, y, Math.max(.5, run.right - run.left), row.laneHeight);
      }
      run = null;
    };
    for (let i = firstAfter(row, lane, begin); i < lane.length && lane[i].begin <= end; ++i) {
      const {batch, kind, begin: from, end: to} = lane[i];
      const left = Math.max(-9, (from - begin) * scale), right = Math.min(width + 9, (to - begin) * scale);
      if (right < 0) continue;
      if (right - left < .5) {
        if (run && left - run.right >= .5) flush();
        run = run || {left, right, batch, kind, spans: 0};
        run.right = Math.max(run.right, right);
        ++run.spans;
        continue;
      }
      flush();
      drawBox(draw, batch, kind, left, y, right - left, row.laneHeight);
      const seen = Math.max(0, left);
      drawNumber(draw, batch, kind, seen, Math.min(width, right) - seen, y, row.laneHeight);
    }
    flush();
  });
};
const ticksOf = width => {
  const least = (end - begin) * 70 / Math.max(width, 70);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find(factor => power * factor >= least * (1 - 1e-9));
  const largest = Math.max(-begin, end);
  const [scale, unit] = [[1e6, 's'], [1e3, 'ms'], [1, '\u00b5s']].find(
    ([size]) => size === 1 || (size <= largest && size <= step * 1001));
  const ticks = [];
  for (let i = Math.ceil(begin / step - 1e-9); i * step <= end + step * 1e-9 && ticks.length < 1000; ++i)
    ticks.push(i * step);
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / scale) + 1e-9)));
  return {ticks, unit, text: tick => trimmed(tick / scale, decimals)};
};
const drawAll = () => {
  const width = axis.clientWidth, {ticks, unit, text} = ticksOf(width);
  const draw = context(axis, 26), scale = width / (end - begin);
  axisUnit.textContent = 'time, ' + unit;
  draw.font = "11px system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif";
  draw.fillStyle = colours.axis;
  draw.fillRect(0, 0, width, 1);
  for (const tick of ticks) {
    const x = (tick - begin) * scale, words = text(tick), half = draw.measureText(words).width / 2;
    draw.fillStyle = colours.axis;
    draw.fillRect(Math.round(x), 0, 1, 5);
    draw.fillStyle = colours.muted;
    draw.fillText(words, Math.max(0, Math.min(width - 2 * half, x - half)), 17);
  }
  for (const row of rows) drawRow(row, ticks);
  drawEdges();
  for (const counter of counters) drawCounter(counter, ticks);
  // As many decimals as tell the ends of the range apart.
  const [size, name] = Math.abs(end) < 1e3 ? [1, '\u00b5s'] : Math.abs(end) < 1e6 ? [1e3, 'ms'] : [1e6, 's'];
  const decimals = Math.max(0, Math.min(9, 3 - Math.floor(Math.log10((end - begin) / size))));
  document.getElementById('range').textContent = trimmed(begin / size, decimals) + ' to ' +
    trimmed(end / size, decimals) + ' ' + name + ' (' + timeText(end - begin) + ')';
};
)js";

/// The second part: wheel, pointers, keys, tooltip, legend.
inline constexpr const char* html_script_input = R"js(
let asked = false;
const redraw = () => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; drawAll(); });
};
const least = Math.max(1e-3, Math.max(Math.abs(first), Math.abs(last)) * 1e-11);
const show = (from, to) => {
  let size = Math.min(Math.max(to - from, Math.min(least, last - first)), last - first);
  begin = Math.min(Math.max(from, first), last - size);
  end = begin + size;
  hideTip();
  redraw();
};
const zoom = (factor, at) => show(at - (at - begin) * factor, at + (end - at) * factor);
const pan = part => show(begin + (end - begin) * part, end + (end - begin) * part);
const showAll = () => show(first, last);
const timeAt = x => {
  const box = axis.getBoundingClientRect();
  return begin + (x - box.left) / box.width * (end - begin);
};
const onPlot = event => event.target instanceof HTMLCanvasElement && view.contains(event.target);

view.addEventListener('wheel', event => {
  if (!onPlot(event) || event.ctrlKey && !event.deltaY) return;
  event.preventDefault();
  const pixels = [1, 16, 400][event.deltaMode] || 1;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
    pan((event.deltaX || event.deltaY) * pixels / axis.clientWidth);
  else
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * pixels * .0025))), timeAt(event.clientX));
}, {passive: false});

const pointers = new Map();
view.addEventListener('pointerdown', event => {
  if (!onPlot(event) || event.button) return;
  pointers.set(event.pointerId, event.clientX);
  event.target.setPointerCapture(event.pointerId);
});
view.addEventListener('pointermove', event => {
  if (!pointers.has(event.pointerId)) { hover(event); return; }
  const xs = () => [...pointers.values()].slice(0, 2);
  const before = xs(), times = before.map(timeAt);
  pointers.set(event.pointerId, event.clientX);
  const after = xs();
  if (after.length === 1) {
    pan((before[0] - after[0]) / axis.clientWidth);
  } else if (Math.abs(after[1] - after[0]) > 8 && Math.abs(before[1] - before[0]) > 8) {
    // The times under both fingers stay under them.
    const perPixel = (times[1] - times[0]) / (after[1] - after[0]);
    const from = times[0] - (after[0] - axis.getBoundingClientRect().left) * perPixel;
    show(from, from + perPixel * axis.clientWidth);
  }
});
for (const name of ['pointerup', 'pointercancel'])
  view.addEventListener(name, event => pointers.delete(event.pointerId));
view.addEventListener('pointerleave', () => hideTip());
view.addEventListener('dblclick', event => { if (onPlot(event)) showAll(); });
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.startsWith('Arrow') && event.target.closest?.('.scroll')) return; // a table scrolls
  const middle = (begin + end) / 2;
  const actions = {'+': () => zoom(.7, middle), '=': () => zoom(.7, middle), '-': () => zoom(1 / .7, middle),
    '0': showAll, ArrowLeft: () => pan(-.15), ArrowRight: () => pan(.15)};
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
});
document.getElementById('in').onclick = () => zoom(.7, (begin + end) / 2);
document.getElementById('out').onclick = () => zoom(1 / .7, (begin + end) / 2);
document.getElementById('all').onclick = showAll;

const tip = document.getElementById('tip');
const hideTip = () => { tip.hidden = true; };
const spanAt = (row, event) => {
  const box = row.canvas.getBoundingClientRect();
  const lane = row.lanes[Math.floor((event.clientY - box.top - 3) / (row.laneHeight + 1))];
  if (!lane) return undefined;
  const time = timeAt(event.clientX), pixel = (end - begin) / box.width;
  let best, distance = 2 * pixel;
  for (let i = firstAfter(row, lane, time - 2 * pixel); i < lane.length && lane[i].begin < time + 2 * pixel; ++i) {
    const away = Math.max(lane[i].begin - time, time - lane[i].end, 0);
    if (away < distance) { best = lane[i]; distance = away; }
  }
  return best;
};
const hover = event => {
  const row = rows.find(candidate => candidate.canvas === event.target);
  const counter = counters.find(candidate => candidate.canvas === event.target);
  const span = row && spanAt(row, event);
  const value = counter ? counterText(counter, timeAt(event.clientX)) : '';
  if (!span && !value) { hideTip(); return; }
  tip.textContent = value || row.name + (row.unit ? ' (' + row.unit + ')' : '') + '\nbatch ' + span.batch + ', ' +
    kinds[span.kind] + '\nbegins at ' + timeText(span.begin) + '\nlasts ' + timeText(span.end - span.begin);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 14 + box.width > innerWidth ? event.clientX - 14 - box.width : event.clientX + 14;
  const top = event.clientY + 14 + box.height > innerHeight ? event.clientY - 14 - box.height : event.clientY + 14;
  tip.style.transform = 'translate(' + Math.max(4, left) + 'px,' + Math.max(4, top) + 'px)';
};

const drawLegend = () => {
  const legend = document.getElementById('legend');
  legend.textContent = '';
  for (const kind of [...used.keys()].sort()) {
    const item = element('span', 'item'), swatch = element('canvas');
    item.append(swatch, kinds[kind]);
    legend.append(item);
    drawBox(context(swatch, 12), used.get(kind), kind, 0, 0, swatch.clientWidth, 12);
  }
  if (edges.length) legend.append(element('span', 'ordered', 'dashed red: nothing orders the two'));
  if (used.size) legend.append(element('span', '', 'number and colour: batch; grey: several, too narrow to see'));
};
const restyle = () => { readColours(); drawLegend(); drawAll(); };
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', restyle);
new ResizeObserver(redraw).observe(view);
restyle();
})();
)js";

} // namespace sluice::detail::drawing
