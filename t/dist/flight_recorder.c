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

/* Each part of what is said of a collective, and what is left out where it has none. */
static void
test_texts(void)
{
    static const struct {
        struct et_comm_look call;
        const char *text;
    } row[] = {
        {{.kind = ET_COMM_BARRIER, .dtype = ET_F32, .seq = 3, .n = 7}, "barrier 3"},
        {{.kind = ET_COMM_BARRIER, .seq = 4, .mark = {5, 6, 0}}, "barrier 4 [5.6]"},
        {{.kind = ET_COMM_ALL_REDUCE, .dtype = ET_BF16, .seq = 57, .n = 10},
         "all_reduce 57 of 10 bf16"},
        {{.kind = ET_COMM_BROADCAST,
          .dtype = ET_I64,
          .seq = 58,
          .n = 0,
          .mark = {9, 0, 0}},
         "broadcast 58 of 0 i64"},
        {{.kind = ET_COMM_ALL_REDUCE,
          .dtype = ET_F32,
          .seq = 59,
          .n = 11,
          .mark = {12, 1, 0}},
         "all_reduce 59 of 11 f32 [12.1]"},
    };
    char text[96];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        is_str(etd_collective_text(&row[i].call, text, sizeof text), row[i].text,
               "a collective is described by what it has");
}

/* Where a rank was writing when it ended there is half an entry: one without a number,
 * or with that of the entry which was in its place before. */
static void
test_half(void)
{
    static const uint64_t numbers[] = {0, 7};
    for (int i = 0; i < 2; i++) {
        f = (struct etd_flight_recorder){0};
        for (int64_t ba = 0; ba < ETD_FLIGHT_EVENTS + 10; ba++)
            etd_flight_event(&f, 0, ba);
        f.entry[6].number = numbers[i]; /* of batch ETD_FLIGHT_EVENTS + 6 */
        char *text = print(), wanted[64];
        int found = 0;
        for (int ba = ETD_FLIGHT_EVENTS + 5; ba <= ETD_FLIGHT_EVENTS + 7; ba++) {
            snprintf(wanted, sizeof wanted, "ba %d ", ba);
            found = 10 * found + (strstr(text, wanted) != NULL);
        }
        is_int(found, 101, "an entry that is half written is left out, and no other");
        free(text);
    }
}

static void
test_time(void)
{
    double t = 0;
    f = (struct etd_flight_recorder){0};
    etd_flight_event(&f, 0, 5);
    f.entry[0].t_ns -= 250 * 1000000000LL;
    char *text = print(), *line = strchr(text, '\n');
    ok(line && sscanf(line, "%lf", &t) == 1 && t <= -250 && t > -2500,
       "an event of 250 s ago has its seconds: %g", t);
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
    test_texts();
    test_half();
    test_time();
    return done();
}
