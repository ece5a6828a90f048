// The editor of the playground: completions of the server, and the lines of findings. Everything is set as text.
"use strict";
(() => {
  const code = document.getElementById("code");
  const list = document.getElementById("completions");
  if (!code || !list) return;
  const says = document.getElementById("completions-count");
  const form = code.form;
  const pause = 150;
  let items = [];
  let typed = 0;
  let active = -1;
  let turn = 0;
  let timer;

  // What is typed stays in this tab, so that it is there after a reload.
  const kept = `toolgate-script${location.search}`;
  const keep = () => {
    try {
      sessionStorage.setItem(kept, JSON.stringify({ code: code.value, language: form.elements.language.value }));
    } catch {
      // Without room the script is not kept.
    }
  };
  const restore = () => {
    const found = JSON.parse(sessionStorage.getItem(kept) ?? "null");
    if (!found || found.code === code.value) return;
    code.value = found.code;
    form.elements.language.value = found.language;
    form.querySelector("input[name=language]:checked")?.dispatchEvent(new Event("change", { bubbles: true }));
  };
  // A screen that answers a form has what was sent.
  if (code.dataset.fresh === undefined) keep();
  else document.addEventListener("DOMContentLoaded", restore);
  form.addEventListener("change", keep);

  const close = () => {
    turn += 1;
    clearTimeout(timer);
    items = [];
    active = -1;
    list.replaceChildren();
    list.hidden = true;
    says.textContent = "";
    code.removeAttribute("aria-activedescendant");
  };

  const mark = (index) => {
    active = (index + items.length) % items.length;
    [...list.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === active)));
    code.setAttribute("aria-activedescendant", `completion-${active}`);
    list.children[active].scrollIntoView({ block: "nearest" });
  };

  const take = (index) => {
    const end = code.selectionStart;
    code.setRangeText(items[index].insert, end - typed, end, "end");
    close();
    code.focus();
    code.dispatchEvent(new Event("input", { bubbles: true }));
  };

  const show = (found) => {
    items = found.items;
    typed = found.typed.length;
    active = -1;
    code.removeAttribute("aria-activedescendant");
    list.replaceChildren(
      ...items.map((item, index) => {
        const option = document.createElement("li");
        option.id = `completion-${index}`;
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", "false");
        const name = document.createElement("code");
        name.textContent = item.name;
        const about = document.createElement("span");
        about.className = "quiet";
        about.textContent = item.about;
        option.append(name, " ", about);
        // A press would take the focus from the editor.
        option.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          take(index);
        });
        return option;
      }),
    );
    list.hidden = items.length === 0;
    says.textContent = items.length === 0 ? "" : `${items.length} completions, arrow keys choose`;
  };

  const ask = async () => {
    turn += 1;
    const own = turn;
    const body = new URLSearchParams({
      form_token: form.elements.form_token.value,
      language: form.elements.language.value,
      before: code.value.slice(Math.max(0, code.selectionStart - 8000), code.selectionStart),
    });
    const response = await fetch("/ui/playground/complete", { method: "POST", body }).catch(() => null);
    if (response?.ok && own === turn) {
      const found = await response.json();
      if (own === turn) show(found);
    }
  };

  code.addEventListener("input", () => {
    keep();
    clearTimeout(timer);
    timer = setTimeout(ask, pause);
  });
  code.addEventListener("blur", close);
  code.addEventListener("click", close);
  code.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      ask();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit(document.getElementById("run-script"));
    } else if (list.hidden) {
      return;
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      mark(active + 1);
    } else if (event.key === "ArrowUp") {
      event.preventDefault();
      mark(active < 0 ? items.length - 1 : active - 1);
    } else if ((event.key === "Enter" || event.key === "Tab") && active >= 0) {
      event.preventDefault();
      take(active);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
  });

  // A finding leads to its place.
  document.addEventListener("click", (event) => {
    const finding = event.target.closest?.("button[data-line]");
    if (!finding) return;
    const lines = code.value.split("\n");
    const line = Math.min(Number(finding.dataset.line), lines.length);
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    const place = start + Math.min(Number(finding.dataset.column) - 1, (lines[line - 1] ?? "").length);
    code.focus();
    code.setSelectionRange(place, place);
  });
})();
