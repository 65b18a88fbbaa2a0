// The player of the scenes: packets between sender, queue and receiver, one lane above the other on the same clock.
// A scene starts when its reader presses a button, and never by itself. Without motion (prefers-reduced-motion) the still picture stands alone.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 480, LANE = 112, SENDER = 62, QUEUE = 122, QUEUE_END = 244, RECEIVER = 418, DATA = 54, ACK = 84;

  function make(name, attributes, parent, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent?.append(element);
    return element;
  }

  // A packet of the data: [flow or -1, number, first number in it, forward, fate, sent, at the queue, left it, (over the wire, arrived)]; times in ms.
  function packet(row, group, longest, wire) {
    const [flow, number, first, forward, fate, sent, queued, left, , arrived] = row;
    const kind = flow < 0 ? "po" : `p${flow % 6}`;
    const shape = make("g", { class: "packet", visibility: "hidden" }, group);
    if (forward) {
      const single = number ? Math.min(13, Math.max(4, (QUEUE_END - QUEUE) / longest - 1)) : 4;
      const width = first < number ? single * 1.8 : single;
      make("rect", { class: kind, x: -width / 2, y: -8, width, height: 16, rx: 1.5 }, shape);
      if (number && width >= 9) make("text", { y: 3.5 }, shape, first < number ? `${first},${number}` : number);
    } else {
      make("circle", { class: kind, r: 3 }, shape);
    }
    const end = fate === 0 ? arrived : fate === 1 ? left : left + wire * 0.35;
    return { flow, number, first, forward, fate, sent, queued, left, arrived, end, shape, rectangle: shape.firstChild, kind };
  }

  class Scene {
    constructor(figure) {
      this.figure = figure;
      this.data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
      this.time = 0;
      this.frame = 0;
      this.captions = [...figure.querySelectorAll(".scene-captions li")];
      this.still = figure.querySelector(".scene-still");
      this.cursor = figure.querySelector(".cursor");
      this.build(figure.querySelector(".scene-player"));
      this.draw();
    }

    build(player) {
      const { lanes, title, end } = this.data;
      const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${LANE * lanes.length + 8}`, role: "img", "aria-label": `${title}: packets on their way` });
      this.clock = make("text", { class: "clock", x: WIDTH - 8, y: 18 }, svg, "");
      this.lanes = lanes.map((lane, index) => this.lane(svg, lane, index * LANE + 4));
      const controls = document.createElement("div");
      controls.className = "scene-controls";
      const button = (text, act) => {
        const made = document.createElement("button");
        made.type = "button";
        made.textContent = text;
        made.addEventListener("click", act);
        controls.append(made);
        return made;
      };
      this.play = button("Play", () => (this.frame ? this.pause() : this.start()));
      button("Step", () => this.step());
      button("Restart", () => { this.pause(); this.seek(0); this.start(); });
      this.slider = document.createElement("input");
      Object.assign(this.slider, { type: "range", min: 0, max: end, step: 0.1, value: 0 });
      this.slider.setAttribute("aria-label", `Time in “${title}”`);
      this.slider.addEventListener("input", () => { this.pause(); this.seek(Number(this.slider.value)); });
      controls.append(this.slider);
      player.append(svg, controls);
      player.hidden = false;
      this.figure.classList.add("on");
      const steps = lanes.flatMap((lane) => lane.packets.filter((row) => row[0] >= 0 && row[3]).flatMap((row) => row.slice(5)));
      this.steps = [...new Set([...steps, ...this.captions.map((one) => Number(one.dataset.at)), end])].filter((at) => at >= 0 && at <= end).sort((a, b) => a - b);
    }

    lane(svg, lane, top) {
      const group = make("g", { transform: `translate(0 ${top})` }, svg);
      make("text", { class: "lane", x: 8, y: 16 }, group, lane.name);
      make("path", { class: "track", d: `M${SENDER} ${DATA}H${RECEIVER}M${RECEIVER} ${ACK}H${SENDER}` }, group);
      make("rect", { class: "box", x: 6, y: 34, width: SENDER - 6, height: 62, rx: 4 }, group);
      make("text", { class: "small", x: 13, y: 69 }, group, "sender");
      make("rect", { class: "box", x: QUEUE - 4, y: DATA - 13, width: QUEUE_END - QUEUE + 8, height: 26, rx: 3 }, group);
      make("text", { class: "small", x: QUEUE - 2, y: DATA - 17 }, group, "queue");
      make("rect", { class: "box", x: RECEIVER, y: 34, width: WIDTH - RECEIVER - 6, height: 62, rx: 4 }, group);
      make("text", { class: "small", x: RECEIVER + 5, y: 62 }, group, "receiver");
      const total = new Set(lane.packets.filter((row) => row[1]).map((row) => `${row[0]}/${row[1]}`)).size;
      const count = make("text", { class: "small", x: RECEIVER + 5, y: 80 }, group, "");
      const longest = lane.packets.reduce((most, row) => Math.max(most, lane.packets.filter((other) => other[3] && other[4] !== 1 && other[6] <= row[6] && other[7] > row[6]).length), 12);
      const rows = lane.packets.map((row) => packet(row, group, longest, this.data.wire));
      return { rows, count, total, width: (QUEUE_END - QUEUE) / longest };
    }

    place(one, lane, t) {
      const shape = one.shape;
      const late = t - one.end;
      const fade = this.data.end * 0.05;
      if (t < one.sent || late > (one.fate ? fade : 0)) return shape.setAttribute("visibility", "hidden");
      let x, y = DATA;
      const part = (from, to) => (to > from ? Math.min(1, Math.max(0, (t - from) / (to - from))) : 1);
      if (!one.forward) {
        x = RECEIVER - part(one.sent, one.end) * (RECEIVER - SENDER);
        y = ACK;
      } else if (t < one.queued) {
        x = SENDER + part(one.sent, one.queued) * (QUEUE - SENDER);
      } else if (t < one.left) {
        x = QUEUE_END - 6 - one.rank * lane.width;
      } else if (one.fate === 1) {
        x = QUEUE - 10;
      } else {
        x = QUEUE_END + (one.fate ? part(one.left, one.end) * 0.35 : part(one.left, one.arrived)) * (RECEIVER - QUEUE_END);
      }
      if (one.fate && t >= one.end) {
        y += 34 * Math.min(1, late / fade);
        shape.setAttribute("opacity", 1 - 0.6 * Math.min(1, late / fade));
        one.rectangle.setAttribute("class", "gone");
      } else {
        shape.setAttribute("opacity", 1);
        one.rectangle.setAttribute("class", one.kind);
      }
      shape.setAttribute("visibility", "visible");
      return shape.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    }

    draw() {
      const t = this.time;
      for (const lane of this.lanes) {
        const waiting = lane.rows.filter((one) => one.forward && one.fate !== 1 && one.queued <= t && t < one.left).sort((a, b) => a.left - b.left);
        waiting.forEach((one, rank) => { one.rank = rank; });
        for (const one of lane.rows) this.place(one, lane, t);
        const there = new Set(lane.rows.filter((one) => one.number && one.fate === 0 && one.arrived <= t)
          .flatMap((one) => Array.from({ length: one.number - one.first + 1 }, (_, index) => `${one.flow}/${one.first + index}`))).size;
        lane.count.textContent = `${there} of ${lane.total}`;
      }
      this.clock.textContent = `${t.toFixed(0)} ms`;
      this.slider.value = t;
      this.slider.setAttribute("aria-valuetext", `${t.toFixed(0)} milliseconds`);
      const [, , width] = this.still.viewBox.baseVal ? [0, 0, this.still.viewBox.baseVal.width] : [0, 0, 720];
      this.cursor.setAttribute("transform", `translate(${((width - 96) * t) / this.data.end} 0)`);
      for (const list of this.figure.querySelectorAll(".scene-captions ol")) {
        let current = null;
        for (const item of list.children) { item.removeAttribute("aria-current"); if (Number(item.dataset.at) <= t + 0.05) current = item; }
        current?.setAttribute("aria-current", "step");
      }
    }

    seek(time) {
      this.time = Math.min(this.data.end, Math.max(0, time));
      this.draw();
    }

    start() {
      if (this.time >= this.data.end) this.time = 0;
      this.play.textContent = "Pause";
      let before = performance.now();
      const speed = this.data.end / (this.data.seconds * 1000);
      const next = (now) => {
        this.seek(this.time + Math.max(0, now - before) * speed);
        before = now;
        if (this.time >= this.data.end) this.pause();
        else this.frame = requestAnimationFrame(next);
      };
      this.frame = requestAnimationFrame(next);
    }

    pause() {
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      this.play.textContent = "Play";
    }

    step() {
      this.pause();
      this.seek(this.steps.find((at) => at > this.time + 0.05) ?? 0);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const figure of document.querySelectorAll("figure.scene")) new Scene(figure);
  });
})();
