/* work.h -- distillation, as the engine does it. */
#ifndef APP_DISTILL_WORK_H
#define APP_DISTILL_WORK_H

#include "engine/crew/work.h"

extern const struct work distill_work;
#endif
