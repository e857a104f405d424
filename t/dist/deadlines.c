/* What has a time in the supervisor has it of a clock that stops with the machine: a
 * command for which ranks and supervisor had no time has not expired (RELIABILITY.md
 * R27).
 */
#include "config.h"

#include <string.h>

#include "core/base/seams.h"
#include "dist/supervisor.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { TTL = 10 }; /* seconds */

static double time_is = 1000;

static double
test_clock(void)
{
    return time_is;
}

/* As a supervisor does whose machine has time for it: twice a second. */
static void
pass(struct etd_supervisor *s, double seconds)
{
    for (double end = time_is + seconds; time_is < end; time_is += 0.5)
        etd_sup_expire(s);
}

static int
waiting(const struct etd_supervisor *s)
{
    int n = 0;
    for (int i = 0; i < ETD_PENDING; i++)
        n += s->pending[i].id != 0;
    return n;
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct eti_seams seams = eti_system;
    static const struct etd_launch launch = {.nproc = 1};
    static struct etd_supervisor s = {.l = &launch, .front = -1, .hub_fd = -1};
    const struct et_request request = {.op = ET_REQUEST_PAUSE, .id = 1};
    seams.monotonic = test_clock;
    eti_ctx_set_seams(cx, &seams);
    s.cx = cx;
    s.alive = 1;
    need(cx, etd_board_new(cx, 1, &s.board));
    etd_board_clear(s.board);
    if (!etd_board_ask(s.board, &request))
        bail("the board is full");
    s.pending[0] = (struct etd_pending){.id = 1, .until = etd_sup_now(&s) + TTL};
    pass(&s, 4);
    is_int(waiting(&s), 1, "a command waits for a rank to take it");
    time_is += 3600;
    pass(&s, 4);
    is_int(waiting(&s), 1, "also when the machine has stood still for an hour");
    pass(&s, 3);
    is_int(waiting(&s), 0, "and expires when its time is over");
    is_int((int)s.kept[0].kind, ETD_EXPIRED, "which is its answer");
    ok(!etd_board_next(s.board, &(struct et_request){0}), "no rank will take it");
    etd_board_free(&s.board);
    et_ctx_free(&cx);
    return done();
}
