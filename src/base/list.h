/* list.h -- intrusive doubly linked lists. A head is a node that points to itself when empty. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define list_entry(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

/* A waiting task links a node of its own stack and unlinks it before it returns; gcc 12 sees
 * only the linking. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#endif
static inline void list_push(struct list *head, struct list *n) /* at the end */
{
    n->prev = head->prev;
    n->next = head;
    head->prev->next = n;
    head->prev = n;
}
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic pop
#endif

static inline void list_push_front(struct list *head, struct list *n)
{
    list_push(head->next, n);
}

/* Unlinks n and leaves it pointing to itself, so unlinking twice is harmless. */
static inline void list_del(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

static inline struct list *list_pop(struct list *head) /* NULL when empty */
{
    struct list *n = head->next;
    if (n == head)
        return NULL;
    list_del(n);
    return n;
}

#define list_each(it, head) for (struct list *it = (head)->next; it != (head); it = it->next)
#define list_each_safe(it, head)                                                                   \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head);                      \
         it = it##_next, it##_next = it->next)
#endif
