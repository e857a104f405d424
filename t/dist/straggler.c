/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks are said to hold the others back (RELIABILITY.md R13, UX.md section 3):
 * when one begins to, and not again until it has caught up meanwhile; with the part of
 * its step that is to blame. Health records as ranks send them, given to the supervisor
 * one after the other. */
#include "config.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/run/supervisor.h"
#include "t/tap.h"

enum { RANKS = 4, SLOW = 2 };

static const struct etd_launch launch = {.nproc = RANKS};
static struct etd_sup_rank ranks[RANKS];
static struct etd_supervisor s = {.l = &launch, .rank = ranks, .front = -1};
static int said; /* the other side of its front */

/* A rank's step, in ms. */
struct step {
    double data, compute;
    double queue; /* of both, in want of a processor; -1: its system does not say */
};
static struct step usual = {50, 50, 1};

static void
begin(void)
{
    memset(ranks, 0, sizeof ranks);
}

/* What the supervisor says while every rank tells, TIMES times, of EACH batches: of
 * rank SLOW they are like STEP, of the others as usual. */
static const char *
tell(int times, int each, struct step step)
{
    static int64_t ba;
    static char text[1 << 16];
    for (int i = 0; i < times; i++) {
        ba += each;
        for (int r = 0; r < RANKS; r++) {
            const struct step *is = r == SLOW ? &step : &usual;
            const struct et_log_entry entry[] = {{"own_ms", is->data + is->compute},
                                                 {"wait_ms", 1},
                                                 {"data_ms", is->data},
                                                 {"hooks_ms", 2},
                                                 {"queue_ms", is->queue}};
            const struct et_record record = {.kind = ET_RECORD_HEALTH,
                                             .rank = r,
                                             .ba = ba,
                                             .entry = entry,
                                             .n = is->queue < 0 ? 4 : 5};
            etd_sup_compare(&s, &record);
        }
    }
    ssize_t n = recv(said, text, sizeof text - 1, MSG_DONTWAIT);
    for (ssize_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : ' '; /* packets have binary heads */
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static int
count(const char *text)
{
    int n = 0;
    while ((text = strstr(text, "holds every step back")) != NULL) {
        n++;
        text++;
    }
    return n;
}

static void
test_once(void)
{
    begin();
    is_int(count(tell(20, 8, usual)), 0, "of ranks that are alike nothing is said");
    is_int(count(tell(600, 8, (struct step){50, 60, 1})), 0,
           "nor of one that takes 10 %% longer");
    is_int(count(tell(2, 8, (struct step){80, 50, 1})), 0,
           "nor of one that does for fewer than 20 batches");
    is_int(count(tell(5, 8, usual)), 0, "and then does not");
    const char *text = tell(30, 8, (struct step){200, 50, 1});
    is_int(count(text), 1, "one that goes on with it is told of, once");
    ok(strstr(text, "rank 2 holds every step back by 150.0 ms (150%): its dataloader. "
                    "Its own part of a step takes 250.0 ms"),
       "by name, with how much, and why");
    is_int(count(tell(1, 8, usual)), 0, "it catches up for a moment");
    is_int(count(tell(30, 8, (struct step){200, 50, 1})), 0,
           "which is not yet another time");
    is_int(count(tell(5, 8, usual)), 0, "it is as fast as the others for a while");
    text = tell(30, 8, (struct step){50, 200, 1});
    is_int(count(text), 1, "and then is told of again");
    ok(strstr(text, "its computing. "), "with what it is this time");
}

/* A time begins anew: it does not keep the beginning of the one before. */
static void
test_moment(void)
{
    const struct step slow = {200, 50, 1};
    begin();
    is_int(count(tell(4, 8, slow)), 1,
           "one that has been slow for 24 batches is told of");
    is_int(count(tell(1, 8, usual)) + count(tell(1, 8, slow)), 0,
           "right behind that a moment changes nothing, either");
}

/* Batches that do not follow each other are no time, in either direction. */
static void
test_now_and_then(void)
{
    const struct step slow = {200, 50, 1};
    begin();
    int n = 0;
    for (int i = 0; i < 10; i++)
        n += count(tell(2, 8, slow)) + count(tell(1, 8, usual));
    is_int(n, 0, "one that is slow now and then, 16 batches in a row at most, is none");
    is_int(count(tell(4, 8, slow)), 1, "with 24 in a row it is");
    for (int i = 0; i < 10; i++)
        n += count(tell(2, 8, usual)) + count(tell(1, 8, slow));
    n += count(tell(4, 8, slow));
    is_int(n, 0, "and stays one while it is fast no longer than that");
}

static void
test_queue(void)
{
    begin();
    is_int(count(tell(600, 8, (struct step){50, 470, 420})), 0,
           "four more processes on each processor: a rank that waits for one is none");
    is_int(count(tell(4, 8, (struct step){50, 470, 380})), 1,
           "what it takes beside that counts");
    begin();
    is_int(count(tell(4, 8, (struct step){50, 80, -1})), 1,
           "where the system does not say, all of it does");
}

/* Of four ranks two take A ms, two B; or one of them has not said it yet. */
static int
tell_halves(double a, double b, int first)
{
    static char text[1 << 16];
    begin();
    for (int64_t ba = 8; ba <= 80; ba += 8)
        for (int r = first; r < RANKS; r++) {
            const struct et_log_entry entry[] = {{"own_ms", r < 2 ? a : b}};
            const struct et_record record = {
                .kind = ET_RECORD_HEALTH, .rank = r, .ba = ba, .entry = entry, .n = 1};
            etd_sup_compare(&s, &record);
        }
    ssize_t n = recv(said, text, sizeof text - 1, MSG_DONTWAIT);
    for (ssize_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : ' ';
    text[n > 0 ? n : 0] = '\0';
    return count(text);
}

static void
test_median(void)
{
    is_int(tell_halves(100, 200, 0), 2,
           "where two of four take twice as long, both do more than is between");
    is_int(tell_halves(100, 130, 0), 0, "15 %% above what is between is not reached");
    is_int(tell_halves(200, 100, 0), 2, "in whatever order they stand");
    is_int(tell_halves(100, 200, 1), 0,
           "of three ranks that have said it the middle one counts");
}

/* Ranks whose data take no time count in the median of that, too. */
static void
test_cause(void)
{
    begin();
    usual = (struct step){0, 50, 1};
    const char *text = tell(30, 8, (struct step){70, 90, 1});
    ok(strstr(text, "its dataloader. ") != NULL,
       "what one rank alone does is the cause, if it is the most") ||
        (diag("%s", text), 0);
    usual = (struct step){60, -10, 1};
    text = (begin(), tell(30, 8, (struct step){94, 28, 1}));
    ok(strstr(text, "its dataloader. ") != NULL,
       "ranks that read data while they compute have not computed less than nothing") ||
        (diag("%s", text), 0);
    usual = (struct step){50, 50, 1};
}

/* It is 20 batches that make the difference, whatever the records are apart. */
static void
test_batches(void)
{
    const struct step slow = {200, 50, 1};
    begin();
    is_int(count(tell(2, 19, slow)), 0,
           "19 batches behind its first slow one it is none");
    is_int(count(tell(1, 1, slow)), 1, "20 behind it it is one");
    is_int(count(tell(1, 1, usual)) + count(tell(1, 19, usual)) +
               count(tell(1, 1, slow)) + count(tell(1, 20, slow)),
           0, "and still is 19 batches behind its first fast one");
    is_int(count(tell(1, 1, usual)) + count(tell(1, 20, usual)), 0,
           "20 behind that it is none");
    is_int(count(tell(1, 1, slow)) + count(tell(1, 20, slow)), 1, "and may be again");
}

int
main(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        bail("no pair of sockets");
    s.front = pair[0];
    said = pair[1];
    test_once();
    test_moment();
    test_now_and_then();
    test_queue();
    test_median();
    test_cause();
    test_batches();
    etd_bytes_free(&s.to_front);
    close(pair[0]);
    close(pair[1]);
    return done();
}
