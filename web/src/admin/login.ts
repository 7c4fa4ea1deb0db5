import { mount } from "./mount";
import Page from "./LoginPage.vue";

await mount(Page);
