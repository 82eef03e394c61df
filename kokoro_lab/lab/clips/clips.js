// Plays the clips of a report. Both sides of a clip run together and one of them is silent, so that switching
// between them loses no time. Nothing is fetched: where a page stands on the disk, a browser would refuse it.
for (const root of document.querySelectorAll(".kokoro-clips:not([data-ready])")) {
  root.dataset.ready = "";
  const all = (selector, within = root) => [...within.querySelectorAll(selector)];
  const rows = all("tbody tr"), drawers = all(".drawer");
  let shown = -1, second = false, frame = 0;

  const drawer = () => drawers[shown];
  const sides = () => all(".side", drawer());
  const heard = () => (second && sides()[1]) || sides()[0];
  const audioOf = (side) => side.querySelector("audio");
  const audio = () => audioOf(heard());
  const lengthOf = (one) => Number(one.dataset.length);
  const each = (action) => sides().map(audioOf).forEach(action);

  const draw = () => {
    const now = audio().currentTime, side = heard(), paused = audio().paused;
    side.querySelector(".cursor").style.left = `${100 * now / lengthOf(audio())}%`;
    for (const word of all(".word", side))
      word.classList.toggle("now", word.dataset.start <= now && now < word.dataset.end);
    drawer().querySelector(".place").textContent = `${now.toFixed(2)} of ${lengthOf(audio()).toFixed(2)} s`;
    drawer().querySelector(".play").textContent = paused ? "▶ Play" : "❚❚ Pause";
    rows[shown].classList.toggle("playing", !paused);
    const view = side.closest(".wide"), x = side.offsetWidth * now / lengthOf(audio());
    if (x < view.scrollLeft || x > view.scrollLeft + view.clientWidth - 40) view.scrollLeft = x - 40;
    cancelAnimationFrame(frame); // of another side that began with this one
    if (paused) return;
    // Two players never begin together: the silent one runs faster or slower until it is where the other is
    each((one) => {
      if (one.muted) one.playbackRate = Math.min(Math.max(1 + 4 * (now - one.currentTime), 0.5), 2);
    });
    frame = requestAnimationFrame(draw);
  };
  const pause = () => { each((one) => one.pause()); draw(); };
  const play = () => {
    if (audio().ended) seek(0);
    each((one) => {
      one.play().then(draw, (error) => {
        if (error.name === "AbortError" || one.muted) return; // it was paused before it began
        const file = one.getAttribute("src");
        drawer().querySelector(".trouble").textContent = `${file.startsWith("data:") ? "The sound" : file} `
          + "cannot be played. It stands beside report.html, in audio/ of the run's folder: open the report there.";
      });
      one.onended = () => { if (one === audio()) pause(); };
    });
  };
  const seek = (time_s) => {
    each((one) => { one.currentTime = Math.min(Math.max(time_s, 0), lengthOf(one)); });
    draw();
  };
  const switchSides = () => {
    if (sides().length < 2) return;
    const before = audio(), playing = !before.paused;
    second = !second;
    const after = audio();
    after.playbackRate = 1;
    // It has run along to within some milliseconds; a seek, which takes longer, is for when it has not
    if (!playing || Math.abs(after.currentTime - before.currentTime) > 0.1)
      after.currentTime = Math.min(before.currentTime, lengthOf(after));
    side();
    if (playing) play(); else draw();
  };
  const side = () => {
    sides().forEach((one) => { one.hidden = one !== heard(); });
    each((one) => { one.muted = one !== audio(); });
    drawer().classList.toggle("second", heard() === sides()[1]);
    drawer().querySelector(".switch")?.setAttribute("aria-pressed", String(second));
  };
  const open = (number) => {
    if (shown >= 0 && shown !== number) pause();
    shown = number;
    second = false;
    drawers.forEach((one, place) => { one.hidden = place !== number; });
    rows.forEach((row, place) => {
      row.classList.toggle("shown", place === number);
      row.querySelector("button").setAttribute("aria-expanded", String(place === number));
    });
    all(".dot").forEach((dot) => dot.classList.toggle("shown", dot.dataset.clip === String(number)));
    side();
    draw();
  };
  const hear = (number) => {
    if (number === shown && !audio().paused) return pause();
    if (number !== shown) {
      open(number);
      seek(0);
      drawer().scrollIntoView({ block: "nearest" });
    }
    play();
  };

  root.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest(selector);
    if (at("[data-clip]")) {
      const number = Number(at("[data-clip]").dataset.clip);
      rows[number].querySelector("button").focus({ preventScroll: true }); // its keys work from here on
      hear(number);
    }
    else if (at(".play")) hear(shown);
    else if (at(".switch")) switchSides();
    else if (at(".side")) {
      const box = at(".side").getBoundingClientRect(), word = at(".word");
      seek(word ? Number(word.dataset.start) : (event.clientX - box.left) / box.width * lengthOf(audio()));
    }
  });
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation(); // to JupyterLab m makes a cell Markdown, and x cuts it
    const row = rows.indexOf(event.target.closest("tr"));
    const act = {
      ...(row >= 0 && {
        ArrowUp: () => rows[row - 1]?.querySelector("button").focus(),
        ArrowDown: () => rows[row + 1]?.querySelector("button").focus(),
      }),
      ...(shown >= 0 && {
        ArrowLeft: () => seek(audio().currentTime - 0.5),
        ArrowRight: () => seek(audio().currentTime + 0.5),
        r: switchSides,
      }),
      ...((row >= 0 || shown >= 0) && !event.target.closest(".switch") && { " ": () => hear(row < 0 ? shown : row) }),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
