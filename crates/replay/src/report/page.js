'use strict';
// Draws the plots from the data in the page. All text is inserted as text, never as markup.
(() => {
  const SVG = 'http://www.w3.org/2000/svg';
  const data = JSON.parse(document.getElementById('data').textContent);
  const byId = id => document.getElementById(id);
  const color = index => `var(--c${index < 8 ? index : index % 7 + 1})`;
  // Lines often coincide, so each has a pattern of its own, too.
  const DASHES = ['', '7 4', '2 3', '10 3 2 3', '5 2', '1 4', '12 4', '4 2 1 2', '14 3 3 3 3 3', '4 8'];
  const dash = index => DASHES[index % DASHES.length];
  // The same pattern for the legend.
  const sampleOf = index => {
    if (dash(index) === '') return color(index);
    let at = 0;
    const stops = dash(index).split(' ').map((length, place) => {
      const from = at;
      at += Number(length);
      return `${place % 2 === 0 ? color(index) : 'transparent'} ${from}px ${at}px`;
    });
    return `repeating-linear-gradient(90deg, ${stops.join(', ')})`;
  };
  const hidden = new Set();
  let price = 0;

  const element = (parent, name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const html = (parent, name, text, properties = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    Object.assign(made, properties);
    parent.append(made);
    return made;
  };
  const short = number => {
    const size = Math.abs(number);
    if (size >= 1e9) return `${+(number / 1e9).toFixed(1)}G`;
    if (size >= 1e6) return `${+(number / 1e6).toFixed(1)}M`;
    if (size >= 1e3) return `${+(number / 1e3).toFixed(1)}k`;
    return `${+number.toPrecision(3)}`;
  };

  // --- tooltip ---
  const tip = html(document.body, 'div', '', { id: 'tip', hidden: true });
  const show = (event, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - width - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - height - 8)}px`;
  };
  const hide = () => { tip.hidden = true; };

  // --- line plots ---
  const WIDTH = 370, HEIGHT = 240, LEFT = 40, RIGHT = 10, TOP = 10, BOTTOM = 26;

  const axisStep = (max, count) => {
    const rough = max / count || 1, base = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map(factor => factor * base).find(size => size >= rough);
  };

  // Lines are { name, index, points: [[x, y], …] }; `one` draws a reference line at y = 1.
  const plot = (figure, lines, { label, value, one = false, marks = false }) => {
    figure.querySelectorAll('svg, .legend').forEach(old => old.remove());
    const shown = lines.filter(line => !hidden.has(line.name) && line.points.length > 0);
    const svg = element(figure, 'svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img' });
    const all = shown.flatMap(line => line.points);
    const maxX = Math.max(1, ...all.map(point => point[0]));
    const maxY = Math.max(one ? 1.05 : 0, ...all.map(point => point[1])) || 1;
    const x = number => LEFT + (number / maxX) * (WIDTH - LEFT - RIGHT);
    const y = number => HEIGHT - BOTTOM - (number / maxY) * (HEIGHT - TOP - BOTTOM);
    for (let number = 0, size = axisStep(maxY, 5); number <= maxY * 1.001; number += size) {
      element(svg, 'line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y(number), y2: y(number) });
      element(svg, 'text', { x: LEFT - 6, y: y(number) + 4, 'text-anchor': 'end' }, value(number));
    }
    for (let number = 0, size = Math.max(1, axisStep(maxX, 6)); number <= maxX; number += size) {
      element(svg, 'text', { x: x(number), y: HEIGHT - BOTTOM + 16, 'text-anchor': 'middle' }, short(number));
    }
    element(svg, 'line', { class: 'axis', x1: LEFT, x2: WIDTH - RIGHT, y1: y(0), y2: y(0) });
    if (one) element(svg, 'line', { class: 'one', x1: LEFT, x2: WIDTH - RIGHT, y1: y(1), y2: y(1) });
    // The first lines are drawn on top, because later ones often coincide with them.
    for (const line of [...shown].reverse()) {
      const path = line.points.map(([px, py], i) => `${i ? 'L' : 'M'}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join('');
      element(svg, 'path', { d: path, fill: 'none', stroke: color(line.index), 'stroke-width': 2, 'stroke-linejoin': 'round', 'stroke-dasharray': dash(line.index) });
      if (marks) for (const [px, py] of line.points) element(svg, 'circle', { cx: x(px), cy: y(py), r: 3.5, fill: color(line.index) });
    }
    const pointer = element(svg, 'line', { class: 'axis', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden' });
    svg.addEventListener('pointermove', event => {
      const box = svg.getBoundingClientRect();
      const wanted = ((event.clientX - box.left) / box.width * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT) * maxX;
      const nearest = line => line.points.reduce((best, point) => Math.abs(point[0] - wanted) < Math.abs(best[0] - wanted) ? point : best);
      if (shown.length === 0) return;
      const position = nearest(shown.reduce((longest, line) => line.points.length > longest.points.length ? line : longest))[0];
      const rows = shown.map(line => [line.name, line.points.find(point => point[0] === position)]).filter(row => row[1]);
      rows.sort((a, b) => b[1][1] - a[1][1]);
      pointer.setAttribute('x1', x(position));
      pointer.setAttribute('x2', x(position));
      pointer.setAttribute('visibility', 'visible');
      show(event, [`${label} ${position}`, ...rows.map(([name, point]) => `${value(point[1]).padStart(9)}  ${name}`)].join('\n'));
    });
    svg.addEventListener('pointerleave', () => { hide(); pointer.setAttribute('visibility', 'hidden'); });
    const legend = html(figure, 'div', undefined, { className: 'legend' });
    for (const line of lines) {
      const button = html(legend, 'button', undefined, { type: 'button' });
      button.setAttribute('aria-pressed', String(!hidden.has(line.name)));
      html(button, 'i', undefined, { className: 'sample' }).style.background = sampleOf(line.index);
      html(button, 'span', line.name);
      button.addEventListener('click', () => {
        if (!hidden.delete(line.name)) hidden.add(line.name);
        draw();
      });
    }
  };

  const byRequest = column => data.prices[price].by_request.map((points, index) => ({
    name: data.policies[index].name, index, points: points.map((point, number) => [number + 1, point[column]]),
  }));

  // The policies tried with several windows, in the color of the same policy without a window.
  const windows = () => {
    const lines = new Map();
    data.policies.forEach((policy, index) => {
      if (index < data.main || policy.keep === null) return;
      const same = data.policies.findIndex(candidate => candidate.name === policy.kind);
      const line = lines.get(policy.kind) ?? { name: policy.kind, index: same < 0 ? lines.size + 1 : same, points: [] };
      line.points.push([policy.keep, data.prices[price].ratios[index]]);
      lines.set(policy.kind, line);
    });
    for (const line of lines.values()) line.points.sort((a, b) => a[0] - b[0]);
    return [...lines.values()];
  };

  // --- the messages of one conversation, by what happened to them ---
  const ACTIONS = [['kept', 'sent unchanged'], ['own', 'summary or marker'], ['masked', 'masked'], ['trimmed', 'trimmed'], ['folded', 'folded'], ['dropped', 'dropped']];
  const MOVED = 1, REFUSED = 2;

  const strips = () => {
    const container = byId('strips');
    container.replaceChildren();
    const conversation = data.conversations[Number(byId('conversation').value)];
    if (!conversation) return;
    const sum = (turn, from, to) => turn.slice(from, to).reduce((total, tokens) => total + tokens, 0);
    const turns = conversation.turns.flat();
    const [sent, leftOut] = [[0, 2], [2, 6]].map(([from, to]) => Math.max(1, ...turns.map(turn => sum(turn, from, to))));
    const width = 960, unit = 78 / (sent + leftOut), line = 6 + leftOut * unit, height = 90;
    conversation.turns.forEach((requests, number) => {
      const row = html(container, 'div', undefined, { className: 'strip' });
      const name = html(row, 'div');
      html(name, 'b', data.policies[number].name);
      const total = requests.reduce((total, turn) => total + sum(turn, 0, 2), 0);
      html(name, 'small', `${short(total)} tokens sent`);
      const drawing = html(row, 'div', undefined, { className: 'drawing' });
      const svg = element(drawing, 'svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', height: 90 });
      const size = Math.min(26, width / requests.length);
      requests.forEach((turn, index) => {
        const x = index * size, wide = Math.max(0.5, size - (size > 4 ? 1.5 : 0));
        let [below, above] = [line, line];
        const column = element(svg, 'g', {});
        ACTIONS.forEach(([key], action) => {
          const tall = turn[action] * unit;
          if (tall <= 0) return;
          const top = action < 2 ? below : above - tall;
          if (action < 2) below += tall; else above -= tall;
          element(column, 'rect', { x, y: top, width: wide, height: tall, fill: `var(--${key})` });
        });
        if (turn[6] === REFUSED) element(column, 'rect', { x, y: line, width: wide, height: 6, fill: 'var(--more)' });
        if (turn[6] === MOVED) element(column, 'circle', { cx: x + wide / 2, cy: above - 3.5, r: Math.min(2.5, size / 3), fill: 'var(--ink)' });
        const rows = ACTIONS.map(([, text], action) => [turn[action], text]).filter(([tokens]) => tokens > 0);
        const more = turn[6] === MOVED ? ['cache miss after the edit'] : turn[6] === REFUSED ? ['refused'] : [];
        const text = [`request ${index + 1}`, ...rows.map(([tokens, text]) => `${tokens.toLocaleString('en').padStart(9)}  ${text}`), ...more];
        column.addEventListener('pointermove', event => show(event, text.join('\n')));
        column.addEventListener('pointerleave', hide);
      });
      element(svg, 'line', { class: 'axis', x1: 0, x2: width, y1: line, y2: line });
      // Beside and below the drawing, because texts in it would be stretched with it.
      const scale = html(drawing, 'div', undefined, { className: 'scale' });
      html(scale, 'span', `${short(leftOut)} left out ↑`);
      html(scale, 'span', `${short(sent)} sent ↓`);
      const axis = html(row, 'div', undefined, { className: 'requests' });
      html(axis, 'span', '1');
      html(axis, 'span', requests.length === 1 ? 'request' : `${requests.length} requests`).style.left = `${Math.min(100, size * requests.length / width * 100)}%`;
    });
  };

  const draw = () => {
    const { unit } = data.prices[price];
    plot(byId('size'), byRequest(0), { label: 'request', value: short });
    plot(byId('cost'), byRequest(1), { label: 'request', value: number => unit + short(number) });
    const swept = windows();
    byId('window').hidden = swept.length === 0;
    if (swept.length > 0) plot(byId('window'), swept, { label: 'turns kept:', value: number => number.toFixed(2), one: true, marks: true });
    for (const section of document.querySelectorAll('section.price')) section.hidden = Number(section.dataset.price) !== price;
    for (const button of document.querySelectorAll('nav button')) {
      button.setAttribute('aria-pressed', String(Number(button.dataset.price) === price));
    }
  };

  for (const mark of document.querySelectorAll('td i')) mark.style.background = color(Number(mark.dataset.policy));
  for (const button of document.querySelectorAll('nav button')) {
    button.addEventListener('click', () => { price = Number(button.dataset.price); draw(); });
  }
  data.conversations.forEach((conversation, number) => html(byId('conversation'), 'option', conversation.id, { value: String(number) }));
  byId('conversation').addEventListener('change', strips);
  for (const [key, text] of ACTIONS) {
    html(byId('keys'), 'i').style.background = `var(--${key})`;
    byId('keys').append(text);
  }
  if (data.prices.length > 1) byId('strips').before(html(document.body, 'p', 'Edits that depend on prices are shown at the first price.', { className: 'hint' }));
  draw();
  strips();
})();
