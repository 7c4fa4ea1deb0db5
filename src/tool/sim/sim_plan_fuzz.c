/* Any message may ask for a plan: it is one that the server accepts, unless it has a fault. */
#include "app/plan/shape.h"
#include "base/err.h"
#include "base/time.h"
#include "tool/sim/sim_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int read_back(struct arena *a, const struct sim_plan *p, enum sim_plan_fault fault)
{
    char iso[TIME_ISO_BYTES];
    struct buf out;
    struct plan_shape shape;
    const char *complaint;
    buf_init(&out);
    time_iso(p->start_us, iso);
    sim_plan_write(p, fault, &out);
    struct plan_frame f = {.kind = p->nutrition ? PLAN_NUTRITION : PLAN_TRAINING,
                           .start_date = str_from(iso, PLAN_DATE_BYTES - 1),
                           .weeks = p->weeks};
    int err = plan_shape_read(a, &f, buf_str(&out), &shape, &complaint);
    buf_release(&out);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct sim_plan p;
    struct arena a;
    arena_init(&a);
    if (sim_plan_read(str_from((const char *)data, n), &p) && p.weeks <= PLAN_WEEKS_MAX) {
        check(read_back(&a, &p, PLAN_RIGHT) == 0);
        check(read_back(&a, &p, PLAN_SUM) == ERR_INVALID);
        check(read_back(&a, &p, PLAN_PROSE) == ERR_INVALID);
    }
    arena_release(&a);
    return 0;
}
