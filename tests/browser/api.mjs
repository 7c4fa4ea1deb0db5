// The pages' picture of the API.
import { readFileSync } from "node:fs";
import { FILE, typesOf } from "../../web/replies.mjs";
import { ok, smoke } from "./tap.mjs";

smoke("the types of replies", async ({ m }) => {
    const document = await (await fetch(`${m.url}/openapi.json`)).json();
    const hint =
        "the API has changed: " +
        "node web/replies.mjs <address of a running server> makes the file anew";
    ok(typesOf(document) === readFileSync(FILE, "utf8"), "follow from /openapi.json", hint);
});
