/* The address that is called when a task is done, and the secret that such calls are signed with:
 * the server tells it once, and it is kept in this page alone, until it is put away. */
import { reactive } from "vue";
import { i18n } from "@/common/i18n";

const CHARS_MAX = 2000;
const URL_FORM = /^https?:\/\/(?:[\w.~-]{1,255}|\[[\da-f:.]+\])(?::(\d*))?(?:[/?#].*)?$/i;
const PORT_MAX = 65535;

/* What the server would refuse; "": nothing, or there is none. */
export function hookProblem(text: string): string {
    const { t } = i18n.global;
    const url = text.trim();
    if (!url) return "";
    if (url.length > CHARS_MAX) return t("plans.wrong.long", { most: CHARS_MAX });
    const found = /^[\x21-\x7e]+$/.test(url) ? URL_FORM.exec(url) : null;
    const port = Number(found?.[1] || 443);
    if (!found || port < 1 || port > PORT_MAX) return t("extract.hook.address");
    return /^https:/i.test(url) ? "" : t("extract.hook.https");
}

export const secrets = reactive(new Map<string, string>()); /* by the id of the task */
