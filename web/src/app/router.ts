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
        { path: "/search", name: "search", component: () => import("./pages/SearchPage.vue") },
        {
            path: "/search/screen",
            name: "screen-nearest",
            component: () => import("./pages/ScreenNearestPage.vue"),
        },
        { path: "/plans", name: "plans", component: () => import("./pages/PlansPage.vue") },
        {
            path: "/plans/new",
            name: "new-plan",
            component: () => import("./pages/NewPlanPage.vue"),
        },
        {
            path: "/plans/:id",
            name: "plan",
            component: () => import("./pages/PlanPage.vue"),
            props: true,
        },
        {
            path: "/extract",
            name: "extractions",
            component: () => import("./pages/ExtractionsPage.vue"),
        },
        {
            path: "/extract/new",
            name: "new-extraction",
            component: () => import("./pages/NewExtractionPage.vue"),
        },
        {
            path: "/extract/templates",
            name: "templates",
            component: () => import("./pages/TemplatesPage.vue"),
        },
        {
            path: "/extract/templates/:id",
            name: "template",
            component: () => import("./pages/TemplatePage.vue"),
            props: true,
        },
        {
            path: "/extract/documents",
            name: "documents",
            component: () => import("./pages/DocumentsPage.vue"),
        },
        {
            path: "/extract/tasks/:id",
            name: "extraction",
            component: () => import("./pages/ExtractionPage.vue"),
            props: true,
        },
        { path: "/posts", name: "posts", component: () => import("./pages/PostsPage.vue") },
        {
            path: "/posts/new",
            name: "new-post",
            component: () => import("./pages/PostEditPage.vue"),
        },
        {
            path: "/posts/:id",
            name: "post",
            component: () => import("./pages/PostPage.vue"),
            props: true,
        },
        {
            path: "/posts/:id/edit",
            name: "edit-post",
            component: () => import("./pages/PostEditPage.vue"),
            props: true,
        },
        { path: "/account", name: "account", component: () => import("./pages/AccountPage.vue") },
        { path: "/:rest(.*)*", redirect: "/" },
    ],
    /* Another day of the same plan, another cell of the same table is the same page. */
    scrollBehavior: (to, from, saved) => saved ?? (to.path === from.path ? {} : { top: 0 }),
});

router.beforeEach(async (to) => {
    if (!known.value) await refreshMe().catch(() => {});
    if (!to.meta.public && !loggedIn.value) return { name: "login", query: { to: to.fullPath } };
    if (to.name === "login" && loggedIn.value) return { name: "home" };
    return true;
});
