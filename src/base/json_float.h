/* json_float.h -- one number of a JSON array of floats. */
#ifndef BASE_JSON_FLOAT_H
#define BASE_JSON_FLOAT_H

/* Reads the number, or the null, that p begins with, and returns what follows it; NULL: there is
 * neither. null is NaN, what no float holds an infinity. Without memory, eight digits at a time;
 * the last bit may differ from the nearest float. */
const char *json_float(const char *p, const char *end, float *out);
#endif
