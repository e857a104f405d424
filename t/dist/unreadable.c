/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that ranks could not read: a checkpoint has those of each, however many they
 * are, and each rank of the run that goes on from it has its own again. */
#include "config.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/data/loader_impl.h"
#include "core/trainer/state.h"
#include "t/dist/group.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { RANKS = 3, MOST = 8 };

/* How many samples each rank could not read, in each case. */
static const int cases[][RANKS] = {{2, 0, 3}, {0, 8, 1}};
enum { CASES = sizeof cases / sizeof *cases };

/* In memory that the test shares with its ranks. */
struct shared {
    char folder[256];
    int status[RANKS];
    int64_t found[RANKS][MOST], n[RANKS];
};
static struct shared *shared;

/* The K-th that RANK could not read. */
static int64_t
unread(int rank, int k)
{
    return 100 * (rank + 1) + 7 * k;
}

static void
open_rank(struct run *r, struct et_ctx *cx, struct et_comm *c,
          const struct et_checkpoint_config *to, const struct et_load_config *from)
{
    void *block;
    run_prepare(r, cx, &(struct run_setup){.device = "ref", .checkpoint = to});
    r->config.comm = c;
    r->config.load = from;
    need(cx, et_alloc(cx, MOST * sizeof *r->train->corrupt, &block));
    et_free(cx, r->train->corrupt);
    r->train->corrupt = block;
    r->train->n_corrupt = 0;
    r->train->max_corrupt = MOST;
}

static int
save_and_load(struct et_ctx *cx, struct et_comm *c, void *data)
{
    const int *n = data, rank = et_comm_rank(c);
    const struct et_checkpoint_config to = {.directory = shared->folder,
                                            .interval = ET_BATCHES(100),
                                            .keep = 1,
                                            .incarnation = 1};
    const struct et_load_config from = {.directory = shared->folder};
    struct run r;
    open_rank(&r, cx, c, &to, NULL);
    for (int k = 0; k < n[rank]; k++)
        r.train->corrupt[r.train->n_corrupt++] = unread(rank, k);
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    open_rank(&r, cx, c, NULL, &from);
    run_start(&r);
    shared->n[rank] = r.train->n_corrupt;
    memcpy(shared->found[rank], r.train->corrupt, sizeof shared->found[rank]);
    run_close(&r);
    return 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int
main(void)
{
    if (!group_possible())
        skip_all("built without Gloo");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        bail("no memory to share");
    for (int i = 0; i < CASES; i++) {
        int n[RANKS], wrong = 0;
        memcpy(n, cases[i], sizeof n);
        memset(shared, 0, sizeof *shared);
        /* Not the fixture's folder, which the first rank that ends would remove. */
        snprintf(shared->folder, sizeof shared->folder, "%s/etude-unread-XXXXXX",
                 P_tmpdir);
        if (!mkdtemp(shared->folder))
            bail("no folder");
        ok(group_run(RANKS, save_and_load, n), "%d ranks save and load", RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            wrong += shared->n[rank] != n[rank];
            for (int k = 0; k < n[rank]; k++)
                wrong += shared->found[rank][k] != unread(rank, k);
        }
        is_int(wrong, 0, "each has those that it could not read: %d, %d and %d", n[0],
               n[1], n[2]);
        (void)nftw(shared->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    return done();
}
