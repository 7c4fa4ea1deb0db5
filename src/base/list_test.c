#include "base/list.h"

#include "tests/tap.h"

struct item {
    int number;
    struct list link;
};

/* The numbers in order, as one: 1, 2, 3 is 123. */
static int numbers(struct list *head)
{
    int forward = 0, backward = 0, place = 1;
    list_each (l, head)
        forward = forward * 10 + list_entry(l, struct item, link)->number;
    for (struct list *l = head->prev; l != head; l = l->prev, place *= 10)
        backward += list_entry(l, struct item, link)->number * place;
    return forward == backward ? forward : -1;
}

int main(void)
{
    struct list head;
    struct item items[] = {{.number = 1}, {.number = 2}, {.number = 3}, {.number = 4}};
    list_init(&head);
    ok(list_empty(&head) && !list_pop(&head), "an empty list");

    list_push(&head, &items[1].link);
    list_push(&head, &items[2].link);
    list_push_front(&head, &items[0].link);
    is_int(numbers(&head), 123, "push at both ends");
    ok(!list_empty(&head), "not empty any more");

    list_del(&items[1].link);
    is_int(numbers(&head), 13, "del from the middle");
    list_del(&items[1].link);
    is_int(numbers(&head), 13, "del twice is harmless");
    list_push(&items[2].link, &items[3].link);
    is_int(numbers(&head), 143, "push before a node");

    ok(list_pop(&head) == &items[0].link, "pop takes the first");
    is_int(numbers(&head), 43, "and leaves the rest");
    list_each_safe (l, &head)
        list_del(l);
    ok(list_empty(&head), "each_safe allows deleting");
    return tap_done();
}
