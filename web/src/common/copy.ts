/* Text to the clipboard; false if the browser does not let us. Pages without TLS have no
 * navigator.clipboard: there a hidden field is copied, the old way. */
export async function copyText(text: string): Promise<boolean> {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        const before = document.activeElement;
        const field = document.createElement("textarea");
        field.value = text;
        field.style.cssText = "position: fixed; opacity: 0";
        document.body.append(field);
        field.select();
        const done = document.execCommand("copy");
        field.remove();
        if (before instanceof HTMLElement) before.focus();
        return done;
    }
}
