/* A rank that holds the others back is told of when it begins, and not again until it
 * has caught up meanwhile; with the part of its step that is to blame. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/supervisor.h"
#include "t/tap.h"

enum { RANKS = 3, EACH = 40 /* batches of a health record */ };
static const struct etd_launch launch = {.nproc = RANKS};
static struct etd_sup_rank ranks[RANKS];
static struct etd_supervisor s = {.l = &launch, .rank = ranks, .front = -1};
static int said; /* the other side of its front */
static int64_t ba;

/* What the supervisor says while every rank tells, TIMES times, how long its step
 * takes: rank WHO reads data for DATA ms and computes for COMPUTE, the others 10
 * and 10. */
static const char *
tell(int times, int who, double data, double compute)
{
    static char text[1 << 16];
    for (int i = 0; i < times; i++) {
        ba += EACH;
        for (int r = 0; r < RANKS; r++) {
            struct et_log_entry entry[2];
            const double d = r == who ? data : 10, c = r == who ? compute : 10;
            const struct et_record record = {
                .kind = ET_RECORD_HEALTH, .rank = r, .ba = ba, .entry = entry, .n = 2};
            snprintf(entry[0].name, sizeof entry[0].name, "data_ms");
            snprintf(entry[1].name, sizeof entry[1].name, "own_ms");
            entry[0].value = d;
            entry[1].value = d + c;
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

int
main(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        bail("no pair of sockets");
    s.front = pair[0];
    said = pair[1];
    for (int r = 0; r < RANKS; r++)
        ranks[r].since_ba = -1;
    is_int(count(tell(20, 1, 10, 10)), 0, "of ranks that are alike nothing is said");
    is_int(count(tell(20, 1, 10, 12)), 0, "nor of one that takes 10 %% longer");
    is_int(count(tell(1, 1, 40, 10)), 0, "nor of one that does once");
    (void)tell(5, 1, 10, 10);
    const char *text = tell(30, 1, 40, 10);
    is_int(count(text), 1, "one that goes on with it is told of, once");
    ok(strstr(text, "rank 1 holds every step back by 30.0 ms (150%): its dataloader. "
                    "Its own part of a step takes 50.0 ms"),
       "by name, with how much, and why");
    is_int(count(tell(1, 1, 10, 10)), 0, "it catches up for a moment");
    is_int(count(tell(30, 1, 40, 10)), 0, "which is not yet another time");
    is_int(count(tell(5, 1, 10, 10)), 0, "it is as fast as the others for a while");
    text = tell(30, 1, 10, 40);
    is_int(count(text), 1, "and then is told of again");
    ok(strstr(text, "its computing. "), "with what it is this time");
    etd_bytes_free(&s.to_front);
    close(pair[0]);
    close(pair[1]);
    return done();
}
