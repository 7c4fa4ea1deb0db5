import { mount } from "./mount";
import Page from "./ControlPage.vue";

await mount(Page);
