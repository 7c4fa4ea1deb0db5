/* application.h -- screening, as the engine does it. */
#ifndef APP_SCREEN_APPLICATION_H
#define APP_SCREEN_APPLICATION_H

#include "engine/crew/application.h"

extern const struct application screen_application;
extern const struct application nearest_application; /* nearest.c */
#endif
