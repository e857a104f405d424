/* SPDX-License-Identifier: Apache-2.0 */
/* until.c: --until: a run ends at a time of its own and is saved, with the schedules of
 * the whole. It is resumed like one that a signal ended. */
#include "config.h"

#include <math.h>

#include "cli/cli.h"

/* After evaluations, when the state is saved: of epochs at the end of one. */
static et_status
look(void *data, struct et_state *s, enum et_event event)
{
    const struct et_time *until = data;
    struct et_time now;
    double elapsed;
    bool over;
    if (event != ET_EVENT_BATCH_CHECKPOINT && event != ET_EVENT_EPOCH_CHECKPOINT)
        return ET_OK;
    if (until->unit == ET_TIME_DURATION) {
        ET_TRY(et_state_elapsed(s, &elapsed));
        over = elapsed >= until->value;
    } else {
        ET_TRY(et_timestamp_get(et_state_get_ctx(s), et_state_get_timestamp(s),
                                until->unit, &now));
        over = now.value >= until->value;
    }
    if (over)
        cli_signals_end_run();
    return ET_OK;
}

int
cli_until_check(struct cli *c)
{
    struct et_time at;
    if (!c->opt.until)
        return CLI_OK;
    if (et_time_parse(NULL, c->opt.until, &at) == ET_OK && at.value > 0 &&
        at.unit != ET_TIME_SECOND)
        return CLI_OK;
    return cli_fail(c, CLI_E_VALUE, "such as 3ep, 500ba or 0.25dur",
                    "--until %s: expected a time after the beginning", c->opt.until);
}

void
cli_until_begin(struct cli *c, struct cli_until *u, struct et_trainer_config *config)
{
    if (!c->opt.until || et_time_parse(NULL, c->opt.until, &u->at) != ET_OK)
        return;
    u->steps = (struct et_trainer_steps){.data = &u->at, .at_event = look};
    config->steps = &u->steps;
}
