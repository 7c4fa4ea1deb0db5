/* fault.h -- why a call to a service brought no reply, as one word: for breakers, metrics, logs. */
#ifndef ENGINE_AI_FAULT_H
#define ENGINE_AI_FAULT_H

/* err and text: of http_call and its task_error, or of a message that ends with that text.
 * "dns": no address. "refused": nothing listens there. "tls": the handshake or the certificate
 * failed. "timeout": no connection or no reply in time. "cut": the connection was lost.
 * "unreadable": the reply is no HTTP, or too long. "other": anything else. */
const char *ai_fault_kind(int err, const char *text);
#endif
