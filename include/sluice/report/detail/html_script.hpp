// The script of a timeline's page. It places what `detail/html_chart.hpp` laid out along the time that is shown.
#pragma once

namespace sluice::detail::drawing {

/// The first part: what is drawn again whenever the range or the width changes. No text of the data becomes HTML: it goes
/// through textContent.
inline constexpr const char* html_script_view = R"js(
'use strict';
(() => {
const [view, chart, axis] = ['view', 'chart', 'axis'].map(id => document.getElementById(id));
const dataOf = element => JSON.parse(element.dataset.of), {first, last, left: most} = dataOf(view);
const made = (tag, attributes, text) => {
  const element = document.createElementNS(chart.namespaceURI, tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  if (text) element.textContent = text;
  return element;
};
const trimmed = (value, decimals) => String(+value.toFixed(decimals));
const timeText = us => {
  const size = Math.abs(us);
  if (size < 1e3) return trimmed(us, 3) + ' \u00b5s';
  return size < 1e6 ? trimmed(us / 1e3, 4) + ' ms' : trimmed(us / 1e6, 5) + ' s';
};

// The data with their elements; spans by lane.
const elements = css => [...chart.querySelectorAll(css)];
const byNumber = (flat, size) => Array.from({length: flat.length / size}, (_, i) => flat.slice(i * size, (i + 1) * size));
const names = elements(':scope > text').map(node => ({node, letters: [...node.textContent]}));
const rows = elements('.spans').map(group => {
  const row = dataOf(group), byLane = Array.from({length: row.lanes}, () => []);
  for (const [lane, batch, kind, begin, duration] of byNumber(row.spans, 5))
    byLane[lane].push({batch, kind, begin, end: begin + duration});
  return {...row, group, byLane};
});
const counters = elements('.counter').map(group => {
  const counter = dataOf(group), [area, line] = group.children;
  return {...counter, area, line, steps: byNumber(counter.steps, 3).map(([time, y, text]) => ({time, y, text}))};
});
const edges = elements('.order').map(group => ({group, ends: dataOf(group), paths: group.querySelectorAll('path')}));

let begin = first, end = last, left = 0, width = 1, scale = 1;
const xOf = time => (time - begin) * scale;
const short = value => Math.round(value * 100) / 100;
const layOut = () => {
  const whole = view.clientWidth;
  left = Math.min(most, .3 * whole);
  width = Math.max(1, whole - left - 16);
  for (const plot of view.querySelectorAll('.plot')) {
    plot.setAttribute('x', left);
    plot.setAttribute('width', width);
  }
  for (const {node, letters} of names) {
    const words = letters.join(''), room = node.matches('.title, .unit') ? whole - 24 : left - 22;
    node.textContent = words;
    if (node.getComputedTextLength() <= room) continue;
    for (let kept = Math.ceil(letters.length * room / node.getComputedTextLength());
      kept >= 0 && node.getComputedTextLength() > room; --kept)
      node.textContent = letters.slice(0, kept).join('') + '\u2026';
    node.append(made('title', {}, words));
  }
};
// How many of `all` come before the first of which `holds` does not hold.
const countOf = (all, holds) => {
  let low = 0, high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(all[middle])) low = middle + 1; else high = middle;
  }
  return low;
};
// The first span of a lane that ends after `time`. In a crowded row's last lane ends are in no order.
const firstAfter = (row, lane, time) =>
  row.crowded && lane === row.byLane[row.lanes - 1] ? 0 : countOf(lane, ({end}) => end < time);
// The number of the last step at or before `time`; -1: there is none.
const stepAt = ({steps}, time) => countOf(steps, step => step.time <= time) - 1;
// All boxes of one look are one path.
const drawRow = row => {
  const paths = new Map(), numbers = [];
  const addBox = (css, x, y, width, height) => paths.set(css, (paths.get(css) || '') +
    `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${-short(width)}z`);
  const addSpan = ({batch, kind}, x, y, width) => {
    const dashed = kind === 3 && width >= 3, inset = dashed ? .5 : 0;
    addBox('cpsw'[kind] + batch % 8 + (dashed ? ' dash' : ''), x + inset, y + inset, width - 2 * inset,
      row.lane - 2 * inset);
  };
  row.byLane.forEach((lane, number) => {
    const y = row.top + 3 + number * (row.lane + 1);
    let run = null; // neighbours too narrow to see
    const flush = () => {
      if (run && run.spans === 1) addSpan(run.span, run.left, y, .5);
      else if (run) addBox('merged', run.left, y, Math.max(.5, run.right - run.left), row.lane);
      run = null;
    };
    for (let i = firstAfter(row, lane, begin); i < lane.length && lane[i].begin <= end; ++i) {
      const span = lane[i], from = Math.max(-9, xOf(span.begin)), to = Math.min(width + 9, xOf(span.end));
      if (to < 0) continue;
      if (to - from < .5) {
        if (run && from - run.right >= .5) flush();
        run = run || {span, left: from, right: to, spans: 0};
        run.right = Math.max(run.right, to);
        ++run.spans;
        continue;
      }
      flush();
      addSpan(span, from, y, to - from);
      const seen = Math.max(0, from), room = Math.min(width, to) - seen, words = String(span.batch);
      if (row.lane < 11 || room < words.length * 6.5 + 2) continue;
      const colour = span.batch % 8, on = span.kind > 1 ? '' : ' on on' + colour;
      numbers.push(made('text', {class: 'no' + on + (span.kind === 1 ? ' halo' + colour : ''),
        x: short(seen + room / 2), y: y + row.lane / 2 + 4}, words));
    }
    flush();
  });
  row.group.replaceChildren(...[...paths].map(([css, d]) => made('path', {class: css, d})), ...numbers);
};
const drawCounter = counter => {
  const {steps, base, line, area} = counter, xAt = time => short(Math.max(-9, Math.min(width + 9, xOf(time))));
  let path = '', from = 0;
  for (let i = Math.max(0, stepAt(counter, begin)); i < steps.length && steps[i].time <= end; ++i) {
    const x = xAt(steps[i].time);
    if (!path) from = x;
    path += path ? `H${x}V${steps[i].y}` : `M${x} ${steps[i].y}`;
  }
  if (path) path += 'H' + xAt(counter.end);
  line.setAttribute('d', path);
  area.setAttribute('d', path && path + `V${base}H${from}Z`);
};
const drawEdge = ({group, ends: [from, y1, to, y2], paths: [wide, edge, head]}) => {
  const x1 = short(xOf(from)), x2 = short(xOf(to));
  group.style.display = Math.min(from, to) >= begin && Math.max(from, to) <= end ? '' : 'none';
  const reach = Math.max(24, Math.abs(x2 - x1) / 2), sag = y1 === y2 ? 12 : 0;
  const curve = `M${x1} ${y1}C${x1 + reach} ${y1 + sag} ${x2 - reach} ${y2 + sag} ${x2 - 6} ${y2}`;
  wide.setAttribute('d', curve);
  edge.setAttribute('d', curve);
  head.setAttribute('d', `M${x2} ${y2}l-8 -4v8z`);
};
const ticksOf = () => {
  const least = (end - begin) * 70 / Math.max(width, 70);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find(factor => power * factor >= least * (1 - 1e-9));
  const largest = Math.max(-begin, end);
  const [size, unit] = [[1e6, 's'], [1e3, 'ms'], [1, '\u00b5s']].find(
    ([size]) => size === 1 || (size <= largest && size <= step * 1001));
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / size) + 1e-9))), ticks = [];
  for (let i = Math.ceil(begin / step - 1e-9); i * step <= end + step * 1e-9 && ticks.length < 1000; ++i)
    ticks.push({x: Math.round(xOf(i * step)) + .5, text: trimmed(i * step / size, decimals)});
  return {ticks, unit};
};
const drawAll = () => {
  scale = width / (end - begin);
  const {ticks, unit} = ticksOf();
  axis.querySelector('text').textContent = 'time, ' + unit;
  axis.querySelector('g').replaceChildren(...ticks.flatMap(({x, text}) =>
    [made('path', {class: 'axis', d: `M${x} 0v5`}), made('text', {class: 'tick', x, y: 16}, text)]));
  document.getElementById('grid').setAttribute('d', [...rows, ...counters].flatMap(
    ({top, height}) => ticks.map(({x}) => `M${x} ${top}v${height}`)).join(''));
  rows.forEach(drawRow);
  counters.forEach(drawCounter);
  edges.forEach(drawEdge);
  // As many decimals as tell the ends of the range apart.
  const [size, name] = Math.abs(end) < 1e3 ? [1, '\u00b5s'] : Math.abs(end) < 1e6 ? [1e3, 'ms'] : [1e6, 's'];
  const decimals = Math.max(0, Math.min(9, 3 - Math.floor(Math.log10((end - begin) / size))));
  document.getElementById('range').textContent = trimmed(begin / size, decimals) + ' to ' +
    trimmed(end / size, decimals) + ' ' + name + ' (' + timeText(end - begin) + ')';
};
)js";

/// The second part: wheel, pointers, keys, tooltip.
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
  tip.hidden = true;
  redraw();
};
const zoom = (factor, at) => show(at - (at - begin) * factor, at + (end - at) * factor);
const pan = part => show(begin + (end - begin) * part, end + (end - begin) * part);
const showAll = () => show(first, last);
const plotLeft = () => view.getBoundingClientRect().left + left;
const timeAt = x => begin + (x - plotLeft()) / width * (end - begin);
const onPlot = event => event.clientX >= plotLeft();

view.addEventListener('wheel', event => {
  if (!onPlot(event) || event.ctrlKey && !event.deltaY) return;
  event.preventDefault();
  const pixels = [1, 16, 400][event.deltaMode] || 1;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
    pan((event.deltaX || event.deltaY) * pixels / width);
  else
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * pixels * .0025))), timeAt(event.clientX));
}, {passive: false});

const pointers = new Map();
view.addEventListener('pointerdown', event => {
  if (!onPlot(event) || event.button) return;
  pointers.set(event.pointerId, event.clientX);
  view.setPointerCapture(event.pointerId);
});
view.addEventListener('pointermove', event => {
  if (!pointers.has(event.pointerId)) { hover(event); return; }
  const xs = () => [...pointers.values()].slice(0, 2);
  const before = xs(), times = before.map(timeAt);
  pointers.set(event.pointerId, event.clientX);
  const after = xs();
  if (after.length === 1) {
    pan((before[0] - after[0]) / width);
  } else if (Math.abs(after[1] - after[0]) > 8 && Math.abs(before[1] - before[0]) > 8) {
    // The times under both fingers stay under them.
    const perPixel = (times[1] - times[0]) / (after[1] - after[0]);
    const from = times[0] - (after[0] - plotLeft()) * perPixel;
    show(from, from + perPixel * width);
  }
});
for (const name of ['pointerup', 'pointercancel'])
  view.addEventListener(name, event => pointers.delete(event.pointerId));
view.addEventListener('pointerleave', () => { tip.hidden = true; });
view.addEventListener('dblclick', event => { if (onPlot(event)) showAll(); });
const zoomIn = () => zoom(.7, (begin + end) / 2), zoomOut = () => zoom(1 / .7, (begin + end) / 2);
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.startsWith('Arrow') && event.target.closest?.('.scroll')) return; // a table scrolls
  const actions = {'+': zoomIn, '=': zoomIn, '-': zoomOut, '0': showAll, ArrowLeft: () => pan(-.15),
    ArrowRight: () => pan(.15)};
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
});
for (const [id, action] of [['in', zoomIn], ['out', zoomOut], ['all', showAll]])
  document.getElementById(id).onclick = action;

const tip = document.getElementById('tip');
const spanText = (row, time, y) => {
  const lane = row.byLane[Math.floor((y - row.top - 3) / (row.lane + 1))] ?? [], near = 2 / scale;
  let best, distance = near;
  for (let i = firstAfter(row, lane, time - near); i < lane.length && lane[i].begin < time + near; ++i) {
    const away = Math.max(lane[i].begin - time, time - lane[i].end, 0);
    if (away < distance) { best = lane[i]; distance = away; }
  }
  return best && row.name + (row.unit ? ' (' + row.unit + ')' : '') + '\nbatch ' + best.batch + ', ' +
    ['compute', 'copy', 'source', 'wait'][best.kind] + '\nbegins at ' + timeText(best.begin) + '\nlasts ' +
    timeText(best.end - best.begin);
};
const counterText = (counter, time) => {
  const step = counter.steps[stepAt(counter, time)];
  return step && counter.name + '\n' + step.text + '\nfrom ' + timeText(step.time) + ' on';
};
const hover = event => {
  const y = event.clientY - chart.getBoundingClientRect().top, time = timeAt(event.clientX);
  const at = places => places.find(({top, height}) => y >= top && y < top + height);
  const row = at(rows), counter = at(counters);
  const text = row ? spanText(row, time, y) : counter && counterText(counter, time);
  tip.hidden = !text || !onPlot(event) || event.target.closest('.order'); // which has its own
  if (tip.hidden) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  const x = event.clientX + 14 + box.width > innerWidth ? event.clientX - 14 - box.width : event.clientX + 14;
  const top = event.clientY + 14 + box.height > innerHeight ? event.clientY - 14 - box.height : event.clientY + 14;
  tip.style.transform = 'translate(' + Math.max(4, x) + 'px,' + Math.max(4, top) + 'px)';
};
new ResizeObserver(() => { layOut(); redraw(); }).observe(view);
layOut();
drawAll();
})();
)js";

/// A function of its own: a page may have tables and no timeline.
inline constexpr const char* html_script_tables = R"js(
(() => {
const numberOf = text => {
  const value = parseFloat(text.replaceAll(',', ''));
  return Number.isNaN(value) ? -Infinity : value;
};
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => head.querySelector('button').addEventListener('click', () => {
    const numbers = head.classList.contains('n');
    const now = head.getAttribute('aria-sort');
    // Numbers begin with the largest.
    const down = now ? now === 'ascending' : numbers;
    for (const other of heads) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const textOf = row => row.cells[column].textContent;
    const order = (a, b) => numbers ? Math.sign(numberOf(textOf(a)) - numberOf(textOf(b))) || 0
      : textOf(a).localeCompare(textOf(b), 'en');
    body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
  }));
}
})();
)js";

} // namespace sluice::detail::drawing
