/* service.h -- AI services: each has an address, keys with permits, and metrics of its own. */
#ifndef ENGINE_AI_SERVICE_H
#define ENGINE_AI_SERVICE_H

#include <stdbool.h>
#include <string.h>

/* Names, as column service of api_list has them. */
#define AI_CHAT      "chat"
#define AI_EMBEDDING "embedding"
#define AI_SERVICES  AI_CHAT "|" AI_EMBEDDING
/* Where below its base address a service answers. */
#define AI_CHAT_PATH      "/chat/completions"
#define AI_EMBEDDING_PATH "/embeddings"

/* There was one service before there were several: in Redis, MySQL and metrics it has no name. */
static inline bool ai_is_chat(const char *service)
{
    return strcmp(service, AI_CHAT) == 0;
}

/* As the log calls it. */
static inline const char *ai_service_words(const char *service)
{
    return ai_is_chat(service) ? "the AI service" : "the embedding service";
}
#endif
