// Files of a zip archive, by their names: as its directory has them.
import { inflateRawSync } from "node:zlib";

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const DEFLATED = 8;

export function unzip(bytes) {
    let end = bytes.length - 22;
    while (end >= 0 && bytes.readUInt32LE(end) !== END) end--;
    if (end < 0) throw new Error("no zip archive");
    const files = {};
    let at = bytes.readUInt32LE(end + 16);
    for (let left = bytes.readUInt16LE(end + 10); left > 0; left--) {
        if (bytes.readUInt32LE(at) !== ENTRY) throw new Error("no entry of a zip archive");
        const method = bytes.readUInt16LE(at + 10);
        const packed = bytes.readUInt32LE(at + 20);
        const [name, extra, comment] = [28, 30, 32].map((k) => bytes.readUInt16LE(at + k));
        const local = bytes.readUInt32LE(at + 42);
        const from =
            local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
        const data = bytes.subarray(from, from + packed);
        files[bytes.toString("utf8", at + 46, at + 46 + name)] =
            method === DEFLATED ? inflateRawSync(data) : data;
        at += 46 + name + extra + comment;
    }
    return files;
}
