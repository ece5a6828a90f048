// What every screen has: the number of open questions, and a notice when toolgate is not reached. All is set as text.
(() => {
  "use strict";
  const notice = document.getElementById("connection");
  const count = document.querySelector("#waiting .count");
  if (!notice || !count) return;
  const pause = 500;
  let state = "";
  let timer;

  const say = (now) => {
    if (now === state || (now === "lost" && state === "closed")) return;
    state = now;
    clearTimeout(timer);
    // Who leaves a page ends its stream too, and then there is nothing to say.
    if (now === "") notice.textContent = "";
    else timer = setTimeout(() => (notice.textContent = notice.dataset[now]), pause);
  };
  const judge = (status) => say(status === 401 ? "closed" : "");

  // Every stream brings the number.
  document.addEventListener("waiting", (event) => {
    count.hidden = event.detail.data === "0";
    count.firstChild.data = event.detail.data;
  });
  document.addEventListener("htmx:sse:error", (event) => say(event.detail.status === 401 ? "closed" : "lost"));
  document.addEventListener("htmx:sse:after:connection", () => judge(200));
  document.addEventListener("htmx:error", (event) => {
    if (event.detail.error instanceof TypeError) say("lost");
  });
  document.addEventListener("htmx:before:response", (event) => {
    judge(event.detail.ctx.response.status);
    // What says why is no part of this screen.
    if (state === "closed") event.preventDefault();
  });
})();
