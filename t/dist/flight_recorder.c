/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank did last, as its dump has it: the newest, each once, in their order, at
 * times before the dump. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/run/flight_recorder.h"
#include "etude/event.h"
#include "t/tap.h"

static struct etd_flight_recorder f;

/* What is printed; the caller frees it. */
static char *
print(void)
{
    char *text;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        bail("no stream");
    etd_flight_print(to, &f);
    fclose(to);
    return text;
}

/* After ALL events the newest KEPT are printed. */
static void
look(int64_t all, int64_t kept)
{
    char *text = print(), *rest = NULL, head[96];
    double before = -INFINITY;
    int64_t n = 0, wrong = 0, late = 0;
    snprintf(head, sizeof head, "-- what it did last, %lld of %lld, ", (long long)kept,
             (long long)all);
    char *line = strtok_r(text, "\n", &rest);
    ok(line && strncmp(line, head, strlen(head)) == 0, "%s", line ? line : "nothing");
    while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
        double t = 1;
        long long ba = -1;
        char name[64] = "";
        wrong += sscanf(line, "%lf ba %lld %63s", &t, &ba, name) != 3 ||
                 ba != all - kept + n ||
                 strcmp(name, et_event_name((enum et_event)(ba % 3))) != 0;
        late += t > 0 || t < before;
        before = t;
        n++;
    }
    is_int(n, kept, "of %lld events so many are printed", (long long)all);
    is_int(wrong, 0, "the newest, in their order");
    is_int(late, 0, "at times that do not come before the last, nor after the dump");
    free(text);
}

static void
test_collective(void)
{
    static const enum etd_flight_kind kinds[] = {ETD_FLIGHT_BEGINS, ETD_FLIGHT_ENDS,
                                                 ETD_FLIGHT_FAILS};
    static const char *const verbs[] = {" begins\n", " ends\n", " fails\n"};
    const struct et_comm_look call = {.kind = ET_COMM_ALL_REDUCE,
                                      .dtype = ET_F32,
                                      .seq = 71,
                                      .n = 5,
                                      .mark = {9, 2, 0}};
    char own[96];
    f = (struct etd_flight_recorder){0};
    etd_collective_text(&call, own, sizeof own);
    ok(strstr(own, " 71 of 5 ") && strstr(own, "[9.2]"), "a collective: %s", own);
    for (int i = 0; i < 3; i++)
        etd_flight_collective(&f, kinds[i], &call);
    char *text = print(), *at = text;
    for (int i = 0; i < 3; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "%s%s", own, verbs[i]);
        at = at ? strstr(at, wanted) : NULL;
        ok(at != NULL, "that it%.*s stands there", (int)strlen(verbs[i]) - 1, verbs[i]);
    }
    free(text);
}

int
main(void)
{
    int64_t n = 0;
    look(0, 0);
    static const int64_t counts[] = {1,
                                     3,
                                     ETD_FLIGHT_EVENTS - 1,
                                     ETD_FLIGHT_EVENTS,
                                     ETD_FLIGHT_EVENTS + 1,
                                     3 * ETD_FLIGHT_EVENTS + 7};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (; n < counts[i]; n++)
            etd_flight_event(&f, (int)(n % 3), n);
        look(n, n < ETD_FLIGHT_EVENTS ? n : ETD_FLIGHT_EVENTS);
    }
    test_collective();
    return done();
}
