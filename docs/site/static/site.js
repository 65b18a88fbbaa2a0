// Code and tables that are wider than the page scroll; the keyboard has to reach them.
document.addEventListener("DOMContentLoaded", () => {
  const names = { PRE: "Code", DIV: "Table" };
  const mark = () => {
    for (const wide of document.querySelectorAll("article pre, article .table-wrapper")) {
      if (wide.scrollWidth <= wide.clientWidth || wide.hasAttribute("tabindex")) continue;
      wide.tabIndex = 0;
      wide.setAttribute("role", "region");
      wide.setAttribute("aria-label", names[wide.tagName] ?? "Wide content");
    }
  };
  mark();
  addEventListener("resize", mark);
  for (const details of document.querySelectorAll("article details")) details.addEventListener("toggle", mark);
});
