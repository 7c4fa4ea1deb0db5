/* sim_extract.h -- fields of a document, as the simulated AI finds them.
 *
 * sim.h has the format of prompts and the rule. The same prompt always gets the same answer, and
 * the same fault: which prompts get one, and of which kind, depends on fields and document
 * alone. */
#ifndef TOOL_SIM_EXTRACT_H
#define TOOL_SIM_EXTRACT_H

#include "app/extract/fields/template.h"
#include "base/buf.h"

struct sim_extract { /* what a prompt asks for; borrows it */
    struct extract_template fields;
    struct str document;
    uint64_t hash;   /* of both */
    bool complained; /* about an earlier answer */
    bool typed;      /* values are JSON of their types, not texts of the document */
};

/* system begins with "Extract:", user has the document. False: nothing is asked for. The fields
 * are in a. */
bool sim_extract_read(struct arena *a, struct str system, struct str user, struct sim_extract *out);

enum sim_extract_fault {
    EXTRACT_RIGHT,
    EXTRACT_TYPES,   /* values of wrong types */
    EXTRACT_MISSING, /* required fields are missing, or all if none is required */
    EXTRACT_QUOTES,  /* right values, with quotes that are not in the document */
    EXTRACT_PROSE,   /* the right answer, with words and a fence around it */
    EXTRACT_FAULTS,  /* how many there are */
};

struct sim_extract_faults {
    double rate;    /* of answers that are wrong, 0 to 1 */
    bool stays;     /* also after a complaint */
    unsigned kinds; /* a bit for each; 0: all */
};
enum sim_extract_fault sim_extract_fault(const struct sim_extract *x,
                                         const struct sim_extract_faults *f);
/* A list like "types,quotes". False: *bad is no kind. */
bool sim_extract_kinds(struct str list, unsigned *kinds, struct str *bad);

/* The answer, or what the fault makes of it; appends. */
void sim_extract_write(struct arena *a, const struct sim_extract *x, enum sim_extract_fault fault,
                       struct buf *out);
#endif
