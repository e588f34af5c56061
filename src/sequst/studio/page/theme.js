// Runs before the page is drawn, so that a chosen theme does not flash. It is no module for that reason.
"use strict";
{
  try {
    const chosen = JSON.parse(localStorage.getItem("sequst.theme") ?? '""');
    if (chosen) document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing follows the system's theme.
  }
}
