/* SPDX-License-Identifier: Apache-2.0 */
/* label.c: the name that people give a checkpoint: a template filled in. */
#include "core/checkpoint/label.h"

#include "etude/checkpoint.h"
#include "core/base/need.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Filling one template. */
struct filling {
    const char *run_name;
    int world; /* ranks, all of this machine; the first fills it */
    const struct et_timestamp *ts;
};

/* The text of placeholder NAME (N bytes) in BUF: its length, as snprintf has it; -1
 * where there is none. Source: spec/trainer.md 8.2. */
static int
fill_one(const struct filling *f, const char *name, size_t n, char *buf, size_t size)
{
    const struct et_timestamp *ts = f->ts;
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {
        {"rank", 0},
        {"local_rank", 0},
        {"node_rank", 0},
        {"world_size", f->world},
        {"local_world_size", f->world},
        {"epoch", ts->epoch},
        {"batch", ts->batch},
        {"batch_in_epoch", ts->batch_in_epoch},
        {"sample", ts->sample},
        {"sample_in_epoch", ts->sample_in_epoch},
        {"token", ts->token},
        {"token_in_epoch", ts->token_in_epoch},
        {"iteration", ts->iteration},
    };
    const struct {
        const char *name;
        double value;
    } clocks[] = {
        {"total_wct", ts->total_wct},
        {"epoch_wct", ts->epoch_wct},
        {"batch_wct", ts->batch_wct},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (strlen(counts[i].name) == n && memcmp(counts[i].name, name, n) == 0)
            return snprintf(buf, size, "%" PRId64, counts[i].value);
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
        if (strlen(clocks[i].name) == n && memcmp(clocks[i].name, name, n) == 0)
            return snprintf(buf, size, "%g", clocks[i].value);
    if (n != strlen("run_name") || memcmp("run_name", name, n) != 0)
        return -1;
    return snprintf(buf, size, "%s", f->run_name);
}

et_status
eti_checkpoint_label(struct et_ctx *cx, const char *pattern, const char *run_name,
                     int world, const struct et_timestamp *ts, char *buf, size_t size)
{
    const struct filling f = {run_name, world, ts};
    size_t used = 0;
    buf[0] = '\0';
    for (const char *p = pattern; *p;) {
        size_t n = strcspn(p, "{"), room = size - used;
        const char *close = n ? NULL : strchr(p, '}');
        int length =
            n       ? snprintf(buf + used, room, "%.*s", (int)n, p)
            : close ? fill_one(&f, p + 1, (size_t)(close - p - 1), buf + used, room)
                    : -1;
        if (length < 0)
            return ET_FAIL(cx, ET_EINVAL,
                           "checkpoint.name: there is no placeholder %.*s",
                           close ? (int)(close - p + 1) : (int)strlen(p), p);
        if ((size_t)length >= room)
            return ET_FAIL(cx, ET_EINVAL, "checkpoint.name: longer than %zu bytes",
                           size - 1);
        used += (size_t)length;
        p = n ? p + n : close + 1;
    }
    return ET_OK;
}

et_status
et_checkpoint_label(struct et_ctx *cx, const char *pattern, const char *run_name,
                    const struct et_timestamp *ts, char *buf, size_t size)
{
    ETI_NEED(cx, pattern, buf);
    return eti_checkpoint_label(cx, pattern, run_name, 1, ts, buf, size);
}
