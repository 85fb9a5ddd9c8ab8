// Scripts that look at a page in a browser, and write what they found into an element `probe`, a line each:
// "problem: …" for what is wrong, "name: value" for what a test compares.
#pragma once

namespace sluice::test {

/// Runs before all else: keeps errors, and draws at once what would be drawn with the next frame.
inline constexpr const char* probe_before = R"js(<script>
window.probed = {errors: []};
addEventListener('error', event => probed.errors.push(event.message));
window.requestAnimationFrame = draw => { draw(); return 0; };
</script>)js";

/// What both kinds of page are asked.
inline constexpr const char* probe_common = R"js(
const found = [];
const say = (name, value) => found.push(name + ': ' + String(value).replaceAll('\n', ' | '));
const problem = text => say('problem', text);
for (const error of probed.errors) problem('error: ' + error);
say('width', innerWidth);
const colourOf = text => (text.match(/[\d.]+/g) || []).map(Number);
const luminance = ([red, green, blue]) => [red, green, blue].reduce((sum, part, i) => {
  const share = part / 255;
  return sum + [.2126, .7152, .0722][i] * (share <= .04045 ? share / 12.92 : ((share + .055) / 1.055) ** 2.4);
}, 0);
const contrast = (a, b) => {
  const [x, y] = [luminance(colourOf(a)), luminance(colourOf(b))];
  return (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
};
// Boxes of text must be seen whole, and must not cover each other.
const checkBoxes = (boxes, width) => {
  for (const {text, box} of boxes) {
    if (box.width <= 0 || box.height <= 0) problem('empty: ' + text);
    if (box.left < -.5 || box.right > width + .5 || box.top < -.5) problem('outside: ' + text);
  }
  for (let i = 0; i < boxes.length; ++i) {
    for (let k = 0; k < i; ++k) {
      const a = boxes[i].box, b = boxes[k].box;
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 2) problem('covered: ' + boxes[i].text + ' and ' + boxes[k].text);
    }
  }
  say('texts', boxes.length);
};
const finish = () => {
  const out = document.createElement('pre');
  out.id = 'probe';
  out.textContent = found.join('\n') + '\nlooked: 1';
  document.body.append(out);
};
)js";

/// For a page of `to_html`.
inline constexpr const char* probe_page = R"js(
if (document.documentElement.scrollWidth > innerWidth)
  problem('the page is ' + document.documentElement.scrollWidth + ' wide');
const background = getComputedStyle(document.body).backgroundColor;
say('dark', luminance(colourOf(background)) < .2 ? 1 : 0);

// Lines of text, as far as a scrolling frame shows them.
const boxes = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement, text = node.data.trim();
  if (!text || parent.closest('script,style,noscript,title,[hidden]')) continue;
  const {color, fill} = getComputedStyle(parent);
  const ratio = contrast(parent.closest('svg') ? fill : color, background);
  if (ratio < 4.5 && !parent.matches('.no')) problem('contrast ' + ratio.toFixed(1) + ': ' + text);
  const frame = parent.closest('.scroll')?.getBoundingClientRect();
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const line of range.getClientRects()) {
    if (line.width === 0) continue; // the end of a line
    const box = {left: line.left, right: line.right, top: line.top, bottom: line.bottom};
    if (frame) {
      box.left = Math.max(box.left, frame.left);
      box.right = Math.min(box.right, frame.right);
      if (box.right <= box.left) continue;
    }
    boxes.push({text, box: {...box, width: box.right - box.left, height: box.bottom - box.top}});
  }
}
checkBoxes(boxes, innerWidth);
for (const name of document.querySelectorAll('#chart>text')) {
  const cut = name.lastChild.data !== undefined ? '' : name.firstChild.data;
  if (cut && !cut.startsWith('encode')) problem('cut: ' + name.textContent);
}

// What was drawn, and that it is seen.
const view = document.getElementById('view'), chart = document.getElementById('chart');
const range = document.getElementById('range');
const press = key => document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
press('0'); // draws all, once
const plot = chart.querySelector('.hit').getBoundingClientRect();
const spansOf = () => [...chart.querySelectorAll('.spans path:not(.merged)')].flatMap(path =>
  [...path.getAttribute('d').matchAll(/M([^ ]*) ([^h]*)h([^v]*)v([^h]*)/g)].map(([, ...numbers]) => {
    const [x, y, width, height] = numbers.map(Number);
    return {path, x, y, width, height};
  }));
const spans = spansOf();
say('spans', spans.length);
for (const {path, x, width} of spans) {
  if (x < -9 || x + width > plot.width + 10 || !(width > 0)) problem('a span from ' + x + ' of ' + width);
  const fill = getComputedStyle(path).fill;
  if (fill === 'none' || fill === 'rgb(0, 0, 0)') problem('without its colour: ' + path.getAttribute('class'));
}
const isDrawn = group => [...group.querySelectorAll('path')].some(path => {
  const box = path.getBoundingClientRect();
  return box.width > 50 && box.height > 3;
});
say('drawn', [...chart.querySelectorAll('.spans, .counter')].filter(isDrawn).length);
say('ticks', view.querySelectorAll('#axis .tick').length);
const lines = [...chart.querySelectorAll('.counter .line')];
if (lines.some(line => getComputedStyle(line).fill !== 'none')) problem('a line is filled');

// Arrows of missing edges: how many end on a row "train".
const trains = [...chart.querySelectorAll('.spans[aria-label^="train:"]')];
let arrows = 0;
for (const head of chart.querySelectorAll('.head')) {
  const at = head.getBoundingClientRect(), y = (at.top + at.bottom) / 2;
  arrows += trains.some(group => {
    const row = group.getBoundingClientRect();
    return y > row.top && y < row.bottom && at.right > row.left && at.right < row.right + 1;
  });
}
say('arrows', arrows + ' ' + (chart.querySelector('.order title')?.textContent ?? ''));

// Hover over the first span, and over a counter.
const tip = document.getElementById('tip');
const hover = (element, x, y) => {
  element.dispatchEvent(new PointerEvent('pointermove',
    {bubbles: true, pointerId: 1, clientX: plot.left + x, clientY: plot.top + y}));
  const shown = tip.getBoundingClientRect();
  if (tip.hidden || shown.left < 0 || shown.right > innerWidth) problem('the tip is not seen');
  return tip.textContent;
};
if (spans.length)
  say('tip', hover(spans[0].path, spans[0].x + spans[0].width / 2, spans[0].y + spans[0].height / 2));
const counter = chart.querySelector('.counter')?.getBoundingClientRect();
if (counter) say('counter', hover(chart, plot.width - 5, (counter.top + counter.bottom) / 2 - plot.top));

// Keys zoom.
const all = range.textContent;
press('+');
say('zoomed', range.textContent !== all ? 1 : 0);
const wider = spansOf();
say('redrawn', wider.length > 0 && wider.length < spans.length && wider[0].width > spans[0].width ? 1 : 0);
press('0');
say('back', range.textContent === all ? 1 : 0);

// The wheel and dragging do too, and a double click shows all again.
view.setPointerCapture = () => {}; // which made events have none for
const send = (kind, name, x, more) => chart.dispatchEvent(new kind(name,
  {bubbles: true, cancelable: true, pointerId: 1, clientX: plot.left + x, clientY: plot.top + 30, ...more}));
const shown = [], note = () => shown.push(range.textContent);
note();
send(WheelEvent, 'wheel', plot.width / 2, {deltaY: -200});
note();
send(PointerEvent, 'pointerdown', 100, {});
send(PointerEvent, 'pointermove', 40, {});
send(PointerEvent, 'pointerup', 40, {});
note();
send(MouseEvent, 'dblclick', 50, {});
note();
const lengthOf = text => text.slice(text.indexOf('('));
say('wheel', lengthOf(shown[1]) !== lengthOf(shown[0]) ? 1 : 0);
say('dragged', shown[2] !== shown[1] && lengthOf(shown[2]) === lengthOf(shown[1]) ? 1 : 0);
say('double', shown[3] === shown[0] ? 1 : 0);

// Heads sort: the largest number first, then the smallest, then by text.
const table = document.querySelector('table.sortable');
const order = () => [...table.tBodies[0].rows].map(row => row.cells[0].textContent).join(' ');
if (table) {
  const heads = table.querySelectorAll('th button');
  for (const [name, head] of [['sorted', 1], ['again', 1], ['text', 0]]) {
    heads[head].click();
    say(name, order());
  }
  say('aria', table.querySelectorAll('th[aria-sort]').length);
}
finish();
)js";

/// For a picture of `to_svg`, which stands in a page.
inline constexpr const char* probe_picture = R"js(
const svg = document.querySelector('svg');
const source = document.getElementById('source').textContent;
if (new DOMParser().parseFromString(source, 'image/svg+xml').querySelector('parsererror'))
  problem('is not XML');
const frame = svg.getBoundingClientRect();
say('picture', frame.width);
const fillOf = css => getComputedStyle(svg.querySelector(css)).fill;
const background = fillOf('.bg');
say('dark', luminance(colourOf(background)) < .2 ? 1 : 0);
const texts = [...svg.querySelectorAll('text')];
checkBoxes(texts.map(text => ({text: text.lastChild.data, box: text.getBoundingClientRect()})), frame.width);
for (const text of texts) {
  const ratio = contrast(getComputedStyle(text).fill, background);
  if (!text.classList.contains('no') && ratio < 4.5) problem('contrast ' + ratio.toFixed(1) + ': ' + text.lastChild.data);
  if (text.getBoundingClientRect().bottom > frame.bottom) problem('below the picture: ' + text.lastChild.data);
}
let spans = 0;
for (const rect of svg.querySelectorAll('rect')) {
  if (!rect.querySelector('title') || rect.classList.contains('hit')) continue;
  ++spans;
  const box = rect.getBoundingClientRect(), fill = getComputedStyle(rect).fill;
  if (box.width <= 0 || box.left < 0 || box.right > frame.right || box.bottom > frame.bottom)
    problem('outside: ' + rect.textContent);
  if (fill === 'none' || fill === 'rgb(0, 0, 0)') problem('without its colour: ' + rect.textContent);
}
say('spans', spans);
const lines = [...svg.querySelectorAll('path.line')];
say('lines', lines.filter(line => line.getTotalLength() > 50 && getComputedStyle(line).fill === 'none').length);
finish();
)js";

} // namespace sluice::test
