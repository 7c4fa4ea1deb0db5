// A server with private stores, and a simulated AI beside it that is as slow as a test needs.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const BIN = resolve(process.env.MILLRACE_BIN ?? join(ROOT, "build/millrace"));
const READY_MS = 90000;

/* Resolves with the first line that matches. */
function line(child, pattern) {
    return new Promise((done, fail) => {
        let seen = "";
        const timer = setTimeout(() => fail(new Error(`not ready:\n${seen}`)), READY_MS);
        const hear = (data) => {
            seen += data;
            const found = pattern.exec(seen);
            if (!found) return;
            clearTimeout(timer);
            done(found);
        };
        child.stdout.on("data", hear);
        child.stderr.on("data", hear);
        child.on("exit", (code) => fail(new Error(`ended with ${code}:\n${seen}`)));
    });
}

const ended = (child) =>
    child.exitCode !== null ? Promise.resolve() : new Promise((done) => child.once("exit", done));

function freePort() {
    return new Promise((done) => {
        const s = createServer().listen(0, "127.0.0.1", () => {
            const { port } = s.address();
            s.close(() => done(port));
        });
    });
}

export class Millrace {
    static async start({ papers = 3000, latency = 5, jitter = 0 } = {}) {
        const m = new Millrace();
        m.data = mkdtempSync(join(tmpdir(), "mrweb"));
        m.pace = { latency, jitter };
        m.aiPort = await freePort();
        await m.ai({});
        m.env = {
            ...process.env,
            MILLRACE_DATA_DIR: m.data,
            MILLRACE_AI_URL: `http://127.0.0.1:${m.aiPort}/v1`,
            MILLRACE_AI_EMBEDDING_URL: `http://127.0.0.1:${m.aiPort}/v1`,
            MILLRACE_NODES: "2",
            MILLRACE_SAMPLE_PAPERS: String(papers),
            MILLRACE_DEMO_ACCOUNTS: "false",
            MILLRACE_CONTACT: "Li Ming, li@uni.example",
            MILLRACE_WEB_DIR: join(ROOT, "web/dist"),
            MILLRACE_EXTRACT_PART_TOKENS: "500", // two pages have parts
        };
        m.port = await freePort();
        await m.serve();
        return m;
    }

    /* Another AI in the place of the one before. */
    async ai({
        latency = this.pace.latency,
        jitter = this.pace.jitter,
        fail = 0,
        kinds = "500",
        more = [],
    }) {
        await this.endAi();
        const pace = ["--latency-ms", String(latency), "--jitter-ms", String(jitter)];
        this.sim = spawn(BIN, [
            "sim",
            "--listen",
            `127.0.0.1:${this.aiPort}`,
            "--seed",
            "1",
            ...pace,
            "--fail",
            String(fail),
            "--fail-kinds",
            kinds,
            ...more,
        ]);
        await line(this.sim, /127\.0\.0\.1:\d+/);
    }

    async endAi() {
        this.sim?.kill("SIGTERM");
        if (this.sim) await ended(this.sim);
    }

    async serve() {
        this.server = spawn(BIN, ["serve", "--listen", `127.0.0.1:${this.port}`], {
            env: this.env,
        });
        await line(this.server, /millrace is ready at http/);
        this.url = `http://127.0.0.1:${this.port}`;
    }

    cli(...args) {
        return execFileSync(BIN, args, {
            env: this.env,
            input: "correct horse\n",
            encoding: "utf8",
        });
    }

    user(name, balance = "100000.00", permission = 10) {
        this.cli("user", "add", name, "--balance", balance, "--permission", String(permission));
    }

    async stop() {
        this.server.kill("SIGTERM");
        await ended(this.server);
        await this.endAi();
        rmSync(this.data, { recursive: true, force: true });
    }
}
