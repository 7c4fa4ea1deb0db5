import { createRouter, createWebHashHistory } from "vue-router";
import { known, loggedIn, refreshMe } from "./me";
import Home from "./pages/HomePage.vue";
import Login from "./pages/LoginPage.vue";

/* Behind a #: any server of files will do, and no address is a file that does not exist. */
export const router = createRouter({
    history: createWebHashHistory(),
    routes: [
        { path: "/", name: "home", component: Home },
        { path: "/login", name: "login", component: Login, meta: { public: true } },
        {
            path: "/runs/:id",
            name: "run",
            component: () => import("./pages/RunPage.vue"),
            props: true,
        },
        { path: "/account", name: "account", component: () => import("./pages/AccountPage.vue") },
        { path: "/:rest(.*)*", redirect: "/" },
    ],
    scrollBehavior: (_to, _from, saved) => saved ?? { top: 0 },
});

router.beforeEach(async (to) => {
    if (!known.value) await refreshMe().catch(() => {});
    if (!to.meta.public && !loggedIn.value) return { name: "login", query: { to: to.fullPath } };
    if (to.name === "login" && loggedIn.value) return { name: "home" };
    return true;
});
