/* A question that was typed and not asked yet: neither a reload nor an ended session loses it. */
import { ref, watch, type Ref } from "vue";
import { me } from "../me";

const key = () => `millrace.search.${me.value?.uid ?? 0}`;

export function typedQuestion(asked: () => string): Ref<string> {
    const typed = ref(sessionStorage.getItem(key()) ?? asked());
    watch(typed, (text) => {
        if (text.trim() === asked()) sessionStorage.removeItem(key());
        else sessionStorage.setItem(key(), text);
    });
    watch(asked, (question) => {
        typed.value = question;
        sessionStorage.removeItem(key());
    });
    return typed;
}
