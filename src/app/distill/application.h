/* application.h -- distillation, as the engine does it. */
#ifndef APP_DISTILL_APPLICATION_H
#define APP_DISTILL_APPLICATION_H

#include "engine/crew/application.h"

extern const struct application distill_application;
#endif
