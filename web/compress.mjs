// Puts .gz and .br beside every text file of dist/: the server sends them as they are.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const WORTH_IT = 1024; // bytes: below, a packet is a packet

function* files(folder) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) yield* files(path);
        else if (/\.(html|js|css|svg|json|txt)$/.test(entry.name)) yield path;
    }
}

for (const path of files("dist")) {
    if (statSync(path).size < WORTH_IT) continue;
    const text = readFileSync(path);
    writeFileSync(path + ".gz", gzipSync(text, { level: 9 }));
    writeFileSync(
        path + ".br",
        brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: text.length } }),
    );
}
