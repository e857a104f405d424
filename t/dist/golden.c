/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks, step for step, against PyTorch's DistributedDataParallel on gloo:
 * gradients averaged, batch norm of a rank's own half. t/golden/make_ddp.py wrote the
 * losses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "t/device.h"
#include "t/dist/group.h"
#include "t/tap.h"
#include "t/train/golden_run.h"

/* As t/train/golden.c has it, and why. */
#define TOLERANCE 1e-4

enum { STEPS = 20, COLUMNS = 4 };

struct job {
    const struct golden *run;
    double loss[STEPS];
};

static int
train(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct job *j = data;
    struct et_device *dev;
    double loss[STEPS];
    if (et_device_open(cx, test_device("cpu"), 0, 1, &dev) != ET_OK)
        return 2;
    (void)golden_train(cx, dev, c, j->run, ET_NONE, STEPS, loss);
    for (int i = 0; i < STEPS && et_comm_rank(c) == 1; i++)
        j->loss[i] = loss[i]; /* rank 1 has them as well as rank 0 */
    et_device_close(&dev);
    return 0;
}

static void
check(struct job *j, const struct golden *run, int column)
{
    double want[STEPS], all[STEPS][COLUMNS], worst;
    golden_load("ddp.txt", STEPS, COLUMNS, all[0]);
    for (int i = 0; i < STEPS; i++)
        want[i] = all[i][column];
    j->run = run;
    ok(group_run(2, train, j), "%s trains with two ranks", run->model);
    int bad = golden_compare(j->loss, want, STEPS, TOLERANCE, &worst);
    ok(bad < 0, "... and its %d losses are those of PyTorch's DDP (worst %.1e)", STEPS,
       worst);
}

int
main(void)
{
    if (!group_possible())
        skip_all("built without Gloo");
    struct job *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j == MAP_FAILED)
        bail("no memory to share");
    check(j, &golden_resnet20, 0);
    check(j, &golden_gpt, 2);
    return done();
}
