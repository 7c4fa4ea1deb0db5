/* http_type.h -- content types by the ending of a file's name. */
#ifndef WIRE_HTTP_TYPE_H
#define WIRE_HTTP_TYPE_H

#include "base/str.h"

/* With a charset where one belongs; "application/octet-stream" for unknown endings. */
const char *http_type_of(struct str name);
#endif
