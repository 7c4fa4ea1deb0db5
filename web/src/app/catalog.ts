/* Tags and journals. They change when an operator loads a corpus, so they are fetched once a visit.
 * */
import { computed, reactive, ref } from "vue";
import { get, type Journal, type Replies, type Tag } from "@/common/api";

export const tags = ref<Tag[]>([]);
export const journals = ref<Journal[]>([]);
export const byName = computed(() => new Map(journals.value.map((j) => [j.name, j])));

/* The years that there are papers of. */
const allYears = computed(() => journals.value.flatMap((j) => Object.keys(j.years).map(Number)));
export const firstYear = computed(() =>
    allYears.value.reduce((a, b) => Math.min(a, b), new Date().getFullYear()),
);
export const lastYear = computed(() =>
    allYears.value.reduce((a, b) => Math.max(a, b), firstYear.value),
);

/* The kinds of tags in the order of the server: the first is the upper level. */
export const levels = computed(() => [...new Set(tags.value.map((x) => x.type))]);
export const tagsOf = (type: string | undefined) => tags.value.filter((x) => x.type === type);

export async function loadCatalog() {
    const [a, b] = await Promise.all([
        get<Replies["GET /api/tags"]>("/api/tags"),
        get<Replies["GET /api/journals"]>("/api/journals"),
    ]);
    tags.value = a.tags;
    journals.value = b.journals;
}

/* Which journals have a tag. */
const names = reactive(new Map<string, Set<string>>());
const asked = new Map<string, Promise<void>>();

export function learn(tag: string): Promise<void> {
    let answer = asked.get(tag);
    if (!answer) {
        answer = get<Replies["GET /api/journals"]>(
            `/api/journals?tag=${encodeURIComponent(tag)}`,
        ).then(
            (r) => void names.set(tag, new Set(r.journals.map((j) => j.name))),
            (e) => {
                asked.delete(tag);
                throw e;
            },
        );
        asked.set(tag, answer);
    }
    return answer;
}

export const namesOf = (tag: string) => names.get(tag);

/* Journals of any of the tags; null while not all of them are known, or none is asked for. */
export function union(chosen: string[]): Set<string> | null {
    const all = new Set<string>();
    for (const tag of chosen) {
        const some = names.get(tag);
        if (!some) return null;
        some.forEach((n) => all.add(n));
    }
    return chosen.length ? all : null;
}

const TAGS_TO_LEARN = 120; /* with more, the lower level is not narrowed by the upper one */
const AT_ONCE = 3;

export async function learnLevel(type: string | undefined) {
    const wanted = tagsOf(type).map((x) => x.tag);
    if (wanted.length > TAGS_TO_LEARN) return;
    const rest = wanted.filter((tag) => !names.has(tag));
    const worker = async () => {
        for (let tag = rest.shift(); tag; tag = rest.shift()) await learn(tag);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

export const paperCount = (j: Journal, from = 0, to = 9999) =>
    Object.entries(j.years).reduce((sum, [y, n]) => (+y >= from && +y <= to ? sum + n : sum), 0);
