/* steer.c: `etude stop`, kill, pause, continue, checkpoint: what is asked of a run that
 * is under way, through its hub. They come back when all ranks have done it, or will
 * not. */
#include "config.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "core/base/seams.h"
#include "core/run/facts.h"
#include "dist/client.h"
#include "dist/target.h"

static const double ANSWER_SECONDS = 30, HUB_SECONDS = 3;

static const struct {
    enum etd_op op;
    const char *said; /* of a run that has done it */
} words[] = {
    {ETD_OP_STOP, "saves and ends"}, {ETD_OP_KILL, "has been ended"},
    {ETD_OP_PAUSE, "is paused"},     {ETD_OP_CONTINUE, "goes on"},
    {ETD_OP_CHECKPOINT, "saves"},
};

static const char *
said_of(enum etd_op op)
{
    size_t i = 0;
    while (words[i].op != op)
        i++;
    return words[i].said;
}

/* What came of it: REJECTED and EXPIRED have numbers of their own (errors.h). */
static int
report(struct cli *c, const char *name, enum etd_op op, const struct etd_answer *a)
{
    if (a->kind == ETD_EXPIRED)
        return cli_fail(c, (enum cli_error)ETD_E_LATE, NULL,
                        "%s: %s was not done in time", name, etd_op_name(op));
    if (a->kind != ETD_APPLIED)
        return cli_fail(c, (enum cli_error)a->code, NULL, "%s: %s: %s", name,
                        etd_op_name(op), a->text);
    if (c->opt.json)
        return cli_print_json(json_pack("{s:s, s:s, s:I, s:I}", "name", name, "op",
                                        etd_op_name(op), "ba", (json_int_t)a->step,
                                        "rev", (json_int_t)a->rev));
    if (!c->opt.quiet)
        printf("%s %s, after batch %lld\n", name, said_of(op), (long long)a->step);
    return CLI_OK;
}

/* A run that has just begun, or whose hub has died, has one in a moment. */
static et_status
ask_hub(struct cli *c, const struct etd_target *target, enum etd_op op,
        struct etd_answer *answer)
{
    const struct etd_client_options o = etd_target_options(target);
    const struct timespec pause = {0, 100000000L};
    double until = eti_monotonic(c->cx) + HUB_SECONDS;
    for (;;) {
        et_status status =
            etd_client_ask(c->cx, &o, op, NULL, NULL, ANSWER_SECONDS, answer);
        if (status != ET_ENOENT || eti_monotonic(c->cx) >= until)
            return status;
        et_error_clear(c->cx); /* nobody listened: nothing was asked */
        nanosleep(&pause, NULL);
    }
}

static int
ask(struct cli *c, const json_t *facts, enum etd_op op)
{
    const char *name = json_string_value(json_object_get(facts, "name"));
    const char *id = json_string_value(json_object_get(facts, "id"));
    struct etd_target target;
    struct etd_answer answer;
    if (!eti_facts_is_alive(facts))
        return cli_fail(c, (enum cli_error)ETD_E_UNREACHABLE,
                        "etude show says how it ended", "%s is not under way", name);
    et_status status = etd_target_local(c->cx, name, id, &target);
    if (status == ET_OK)
        status = ask_hub(c, &target, op, &answer);
    if (status == ET_OK)
        return report(c, name, op, &answer);
    int code = cli_fail(c, (enum cli_error)ETD_E_UNREACHABLE, NULL, "%s: %s", name,
                        et_error_get(c->cx)->message);
    et_error_clear(c->cx);
    return code;
}

static int
steer(struct cli *c, enum etd_op op)
{
    int code;
    if (c->n_args != 1)
        return cli_fail(c, CLI_E_OPERAND, "etude runs lists them", "%s takes one run",
                        etd_op_name(op));
    json_t *facts = cli_run_find(c, c->arg[0], &code);
    if (!facts)
        return code;
    code = ask(c, facts, op);
    json_decref(facts);
    return code;
}

int
cli_stop(struct cli *c)
{
    return steer(c, ETD_OP_STOP);
}

int
cli_kill(struct cli *c)
{
    return steer(c, ETD_OP_KILL);
}

int
cli_pause(struct cli *c)
{
    return steer(c, ETD_OP_PAUSE);
}

int
cli_continue(struct cli *c)
{
    return steer(c, ETD_OP_CONTINUE);
}

int
cli_checkpoint(struct cli *c)
{
    return steer(c, ETD_OP_CHECKPOINT);
}
