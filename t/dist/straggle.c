/* Which ranks are said to hold the others back (RELIABILITY.md R13, UX.md section 3):
 * health records as ranks send them, given to the supervisor one after the other. */
#include "config.h"

#include <string.h>

#include "dist/supervisor.h"
#include "t/tap.h"

enum { RANKS = 4, SLOW = 2 };

static struct etd_launch launch = {.nproc = RANKS, .world = RANKS};
static struct etd_sup_rank rank[RANKS];
static struct etd_supervisor s = {.l = &launch, .rank = rank, .front = -1};

/* SECONDS of records, EACH batches in one: of SLOW own time is OWN ms, QUEUE of it in
 * want of a processor (-1: its system does not say); of the others 100 and 1. */
static void
tell(int seconds, int each, double own, double queue)
{
    static int64_t ba;
    for (int i = 0; i < seconds; i++) {
        ba += each;
        for (int k = 0; k < RANKS; k++) {
            bool is = k == SLOW;
            struct et_log_entry e[] = {{"own_ms", is ? own : 100},
                                       {"wait_ms", 1},
                                       {"data_ms", 10},
                                       {"hooks_ms", 2},
                                       {"queue_ms", is ? queue : 1}};
            struct et_record r = {.kind = ET_RECORD_HEALTH,
                                  .rank = k,
                                  .ba = ba,
                                  .entry = e,
                                  .n = is && queue < 0 ? 4 : 5};
            etd_sup_compare(&s, &r);
        }
    }
}

static int
count(void)
{
    int n = 0;
    for (int i = 0; i < RANKS; i++)
        n += rank[i].straggles;
    return n;
}

static void
begin(void)
{
    memset(rank, 0, sizeof rank);
    for (int i = 0; i < RANKS; i++)
        rank[i].since_ba = -1;
}

int
main(void)
{
    begin();
    tell(600, 8, 110, 1);
    is_int(count(), 0, "a rank that takes a tenth longer is no straggler");
    tell(2, 8, 130, 1);
    is_int(count(), 0, "nor one that does for fewer than 20 batches");
    tell(600, 8, 110, 1);
    tell(4, 8, 130, 1);
    ok(count() == 1 && rank[SLOW].straggles, "one that takes 30 %% longer for 20 is");
    tell(4, 8, 100, 1);
    is_int(count(), 0, "until it has been like the others for as long");

    begin();
    tell(600, 8, 520, 420);
    is_int(count(), 0,
           "four more processes on each processor: a rank that waits for one is none");
    tell(4, 8, 520, 380);
    ok(rank[SLOW].straggles, "what it takes beside that counts");
    begin();
    tell(4, 8, 130, -1);
    ok(rank[SLOW].straggles, "where the system does not say, all of it does");
    return done();
}
