// The same searches by faiss: faiss FOLDER ROWS DIMENSION ROUNDS flat|sq8. One thread. Prints JSON.
#include "common.h"

#include <faiss/IndexFlat.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/impl/IDSelector.h>
#include <omp.h>

#include <memory>
#include <vector>

using Rows = faiss::Index::idx_t;

static size_t search(void *arg, const float *query, uint32_t *found)
{
    float scores[K];
    Rows rows[K];
    static_cast<faiss::Index *>(arg)->search(1, query, K, scores, rows);
    for (size_t i = 0; i < K; i++)
        found[i] = uint32_t(rows[i]);
    return K;
}

struct Few {
    faiss::Index *index;
    faiss::SearchParameters parameters;
};

static size_t search_few(void *arg, const float *query, uint32_t *found)
{
    auto *few = static_cast<Few *>(arg);
    float scores[K];
    Rows rows[K];
    few->index->search(1, query, K, scores, rows, &few->parameters);
    for (size_t i = 0; i < K; i++)
        found[i] = uint32_t(rows[i]);
    return K;
}

static std::unique_ptr<faiss::Index> empty_one(bool flat, size_t dimension)
{
    if (flat)
        return std::make_unique<faiss::IndexFlatIP>(dimension);
    return std::make_unique<faiss::IndexScalarQuantizer>(
        dimension, faiss::ScalarQuantizer::QT_8bit, faiss::METRIC_INNER_PRODUCT);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    omp_set_num_threads(1);
    struct world w = world_of(argv[1], strtoul(argv[2], nullptr, 10), strtoul(argv[3], nullptr, 10));
    size_t rounds = strtoul(argv[4], nullptr, 10);
    bool flat = strcmp(argv[5], "flat") == 0;
    struct stopwatch from = watch_now();
    auto index = empty_one(flat, w.dimension);
    index->train(Rows(w.rows), w.base);
    index->add(Rows(w.rows), w.base);
    struct stopwatch took = watch_since(from);
    printf("{\"build_s\": %.3f, \"bytes\": %zu, ", took.cpu,
           w.dimension * (flat ? sizeof(float) : 1));
    measure(&w, "search", w.truth, search, index.get(), rounds);

    std::vector<uint8_t> bits((w.rows + 7) / 8);
    for (size_t row = FILTERED; row < w.rows; row += 20)
        bits[row / 8] |= uint8_t(1 << row % 8);
    faiss::IDSelectorBitmap selector(bits.size(), bits.data());
    Few few = {index.get(), {}};
    few.parameters.sel = &selector;
    measure(&w, "filter", w.truth5, search_few, &few, rounds);
    from = watch_now();
    index->add(1000, w.base);
    printf("\"add_1000_ms\": %.3f}\n", watch_since(from).cpu * 1e3);
    return 0;
}
