// The same searches by hnswlib: hnsw FOLDER ROWS DIMENSION ROUNDS WANTED, with M 16 and 200 while it
// is built, and of several sizes of its search list (ef) the smallest that reaches the recall
// WANTED, or the largest. The graph is kept in FOLDER. One thread. Prints JSON.
#include "common.h"

#include <hnswlib/hnswlib.h>

#include <string>

using Graph = hnswlib::HierarchicalNSW<float>;

static size_t search(void *arg, const float *query, uint32_t *found)
{
    auto best = static_cast<Graph *>(arg)->searchKnn(query, K);
    size_t n = best.size();
    for (size_t i = n; i-- > 0; best.pop())
        found[i] = uint32_t(best.top().second);
    return n;
}

static double recall_of(const struct world *w, Graph *graph)
{
    size_t hits = 0;
    uint32_t found[K];
    for (size_t q = 0; q < w->count; q++) {
        size_t n = search(graph, w->queries + q * w->dimension, found);
        hits += hits_of(w, w->truth, q, found, n);
    }
    return double(hits) / double(w->count * K);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    struct world w = world_of(argv[1], strtoul(argv[2], nullptr, 10), strtoul(argv[3], nullptr, 10));
    size_t rounds = strtoul(argv[4], nullptr, 10);
    double wanted = atof(argv[5]);
    hnswlib::InnerProductSpace space(w.dimension);
    std::string path = std::string(argv[1]) + "/hnsw-" + argv[2];
    Graph *graph;
    printf("{");
    size_t before = resident_bytes();
    if (access(path.c_str(), R_OK) == 0) {
        graph = new Graph(&space, path, false, w.rows + 1000);
    } else {
        struct stopwatch from = watch_now();
        graph = new Graph(&space, w.rows + 1000, 16, 200);
        for (size_t i = 0; i < w.rows; i++)
            graph->addPoint(w.base + i * w.dimension, i);
        printf("\"build_s\": %.3f, ", watch_since(from).cpu);
        graph->saveIndex(path);
    }
    printf("\"bytes\": %zu, ", (resident_bytes() - before) / w.rows);
    double recall = 0;
    for (size_t ef : {16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512}) {
        graph->setEf(ef);
        recall = recall_of(&w, graph);
        if (recall >= wanted || ef == 512) {
            printf("\"ef\": %zu, ", ef);
            break;
        }
    }
    measure(&w, "search", w.truth, search, graph, rounds);
    struct stopwatch from = watch_now();
    for (size_t i = 0; i < 1000; i++)
        graph->addPoint(w.base + (w.rows - 1 - i) * w.dimension, w.rows + i);
    printf("\"add_1000_ms\": %.3f}\n", watch_since(from).cpu * 1e3);
    return 0;
}
