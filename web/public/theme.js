// Before the first paint, and from a file: inline scripts are not allowed.
(function () {
    var chosen = null;
    try {
        chosen = localStorage.getItem("millrace.theme");
    } catch (e) {
        /* no storage: the system decides */
    }
    var dark =
        chosen === "dark" ||
        (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
