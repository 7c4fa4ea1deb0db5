/* work.h -- screening, as the engine does it. */
#ifndef APP_SCREEN_WORK_H
#define APP_SCREEN_WORK_H

#include "engine/crew/work.h"

extern const struct work screen_work;
#endif
