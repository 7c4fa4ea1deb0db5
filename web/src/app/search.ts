/* Those rows of a feed that have all the words: looked through as they come, some milliseconds at a
 * time, so that the page never stalls, however many there are. */
import { shallowRef } from "vue";
import type { Result } from "@/common/api";
import type { ResultFeed } from "./results";

const SLICE_MS = 8;
const LOOK_AT_CLOCK = 200; /* rows */
const texts = new WeakMap<Result, string>();

function text(r: Result) {
    let found = texts.get(r);
    if (found === undefined) {
        const said = `${r.title ?? ""}\n${r.reason ?? ""}\n${r.error ?? ""}`;
        found = `${said}\n${r.journal}\n${r.year}\n${r.doi}`.toLowerCase();
        texts.set(r, found);
    }
    return found;
}

export class Search {
    readonly rows: Result[] = [];
    readonly count = shallowRef(0); /* of rows; follow it, rows are changed in place */
    readonly looking = shallowRef(false);
    private places: number[] = []; /* of those in the feed */
    private upTo = 0;
    private timer: number | undefined;

    constructor(
        private readonly feed: ResultFeed,
        private readonly words: string[],
    ) {
        this.look();
    }

    /* The feed has other rows from that one on. */
    again(from: number) {
        while (this.places.length && this.places.at(-1)! >= from) {
            this.places.pop();
            this.rows.pop();
        }
        this.upTo = Math.min(this.upTo, from);
        if (this.timer === undefined) this.look();
    }

    stop() {
        window.clearTimeout(this.timer);
    }

    private look = () => {
        const { rows } = this.feed;
        const until = performance.now() + SLICE_MS;
        this.timer = undefined;
        for (; this.upTo < rows.length; this.upTo++) {
            const r = rows[this.upTo]!;
            if (this.words.every((w) => text(r).includes(w))) {
                this.places.push(this.upTo);
                this.rows.push(r);
            }
            if (this.upTo % LOOK_AT_CLOCK === 0 && performance.now() > until) {
                this.upTo++;
                this.timer = window.setTimeout(this.look);
                break;
            }
        }
        this.looking.value = this.timer !== undefined;
        this.count.value = this.rows.length;
    };
}
