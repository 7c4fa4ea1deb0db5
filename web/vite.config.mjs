// Two applications: / for researchers, /admin/*.html for operators. Every .html file under admin/
// is an entry of its own, so that adding a page is adding a file.
import vue from "@vitejs/plugin-vue";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const pages = readdirSync(here("./admin")).filter((name) => name.endsWith(".html"));

export default defineConfig({
    plugins: [vue()],
    resolve: { alias: { "@": here("./src") } },
    define: { __VUE_I18N_FULL_INSTALL__: "false", __VUE_I18N_LEGACY_API__: "false" },
    build: {
        target: "es2022",
        // Nothing inline: the server's Content-Security-Policy allows scripts from files only.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        chunkSizeWarningLimit: 700,
        rollupOptions: {
            input: [here("./index.html"), ...pages.map((name) => here(`./admin/${name}`))],
            output: {
                manualChunks: (id) =>
                    /node_modules\/(zrender|echarts)\//.test(id) ? "echarts" : undefined,
            },
        },
    },
});
