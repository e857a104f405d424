/* SPDX-License-Identifier: Apache-2.0 */
/* steer.c: `etude stop`, kill, pause, continue, checkpoint, set, algo, take, loglevel:
 * what is asked of a run that is under way, here or at a worker, through its hub. They
 * come back when all ranks have done it, or will not. */
#include "config.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "core/base/seams.h"
#include "core/journal/events.h"
#include "core/library/facts.h"
#include "dist/hub/client.h"
#include "dist/worker/target.h"

static const double ANSWER_SECONDS = 30, HUB_SECONDS = 10, TURN_SECONDS = 120;
/* Ten seconds, but for those in which the machine stood still. */
enum { LOG_TRIES = 500 };

/* ---- the run ---- */

/* A run, and where its hub is asked. */
struct steered {
    char name[2 * ETD_ADDRESS];  /* as people call it */
    char id[2 * ETD_RUN_ID + 1]; /* of one on this machine; "" */
    char ended[PATH_MAX];        /* directory of one that has ended; "" */
    long long pid;               /* of the supervisor of one on this machine; 0 */
    struct etd_target target;    /* of one that has not */
};

static int
unreachable(struct cli *c, const struct steered *run)
{
    const struct et_error *e = et_error_get(c->cx);
    char hint[sizeof e->hint];
    snprintf(hint, sizeof hint, "%s", e->hint);
    if (!*hint && run->pid > 0)
        snprintf(hint, sizeof hint, "kill -TERM %lld ends the run, once it has saved",
                 run->pid);
    int code = cli_fail(
        c, e->code ? (enum cli_error)e->code : (enum cli_error)ETD_E_UNREACHABLE,
        *hint ? hint : NULL, "%s: %s", run->name, e->message);
    et_error_clear(c->cx);
    return code;
}

static int
find_here(struct cli *c, const char *text, struct steered *run)
{
    int code;
    json_t *facts = cli_run_find(c, text, &code);
    if (!facts)
        return code;
    const char *name = json_string_value(json_object_get(facts, "name"));
    const char *id = json_string_value(json_object_get(facts, "id"));
    snprintf(run->name, sizeof run->name, "%s", name ? name : text);
    if (!eti_facts_is_alive(facts))
        snprintf(run->ended, sizeof run->ended, "%s",
                 json_string_value(json_object_get(facts, "directory")));
    else
        run->pid = json_integer_value(json_object_get(facts, "pid"));
    snprintf(run->id, sizeof run->id, "%s", id ? id : "");
    json_decref(facts);
    return code;
}

/* TEXT is a run of this machine, RUN@WORKER or an address with a run. */
static int
find(struct cli *c, const char *text, struct steered *run)
{
    char folder[PATH_MAX];
    bool is_far;
    *run = (struct steered){0};
    snprintf(run->name, sizeof run->name, "%.*s", (int)sizeof run->name - 1, text);
    et_status status = etd_target_parse(
        c->cx, text, cli_user_folder(folder, sizeof folder), &run->target, &is_far);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    if (!is_far)
        return find_here(c, text, run);
    if (!run->target.run[0])
        return cli_fail(c, CLI_E_OPERAND, "etude worker runs lists those of a worker",
                        "%s is a worker: name the run as well, RUN@%s or ADDRESS/RUN",
                        text, text);
    return CLI_OK;
}

/* ---- asking ---- */

/* A run that has just begun, or whose hub has died, has one in a moment. Where it
 * listens shows only then. */
static et_status
ask_hub(struct cli *c, const struct steered *run, enum etd_op op, const char *key,
        const char *value, struct etd_answer *answer)
{
    const struct timespec pause = {0, 100000000L};
    double began = eti_monotonic(c->cx);
    for (;;) {
        struct etd_target to = run->target;
        et_status status =
            run->id[0] ? etd_target_local(c->cx, run->name, run->id, &to) : ET_OK;
        const struct etd_client_options o = etd_target_options(&to);
        if (status == ET_OK)
            status = etd_client_ask(c->cx, &o, op, key, value, ANSWER_SECONDS, answer);
        /* The hub takes ten a second: a script's next command waits for its turn. */
        bool early = status == ET_OK && answer->kind == ETD_REJECTED &&
                     answer->code == ETD_E_RATE;
        double waits = eti_monotonic(c->cx) - began;
        if ((status != ET_ENOENT && !early) ||
            waits >= (early ? TURN_SECONDS : HUB_SECONDS))
            return status;
        et_error_clear(c->cx); /* nobody listened: nothing was asked */
        nanosleep(&pause, NULL);
    }
}

/* REJECTED and EXPIRED have numbers of their own (errors.h). */
static int
ask(struct cli *c, const struct steered *run, enum etd_op op, const char *key,
    const char *value, struct etd_answer *a)
{
    if (*run->ended)
        return cli_fail(c, (enum cli_error)ETD_E_UNREACHABLE,
                        "etude show says how it ended", "%s is not under way",
                        run->name);
    if ((key && strlen(key) >= ETD_WORD) || (value && strlen(value) >= etd_op_room(op)))
        return cli_fail(c, CLI_E_VALUE, NULL, "%s: its text has at most %zu bytes",
                        etd_op_name(op), etd_op_room(op) - 1);
    if (ask_hub(c, run, op, key, value, a) != ET_OK)
        return unreachable(c, run);
    if (a->kind == ETD_EXPIRED)
        return cli_fail(c, (enum cli_error)ETD_E_LATE, NULL,
                        "%s: %s was not done in time", run->name, etd_op_name(op));
    if (a->kind != ETD_APPLIED)
        return cli_fail(c, (enum cli_error)a->code, NULL, "%s: %s%s%s: %s", run->name,
                        etd_op_name(op), key ? " " : "", key ? key : "", a->text);
    return CLI_OK;
}

/* ---- saying ---- */

/* KEY and VALUE may be NULL. NULL: no memory. */
static json_t *
json_of(const struct steered *run, enum etd_op op, const char *key, const char *value,
        const struct etd_answer *a)
{
    return json_pack("{s:s, s:s, s:s*, s:s*, s:I, s:I, s:s}", "name", run->name, "op",
                     etd_op_name(op), "key", key, "value", value, "ba",
                     (json_int_t)a->step, "rev", (json_int_t)a->rev, "text", a->text);
}

/* One that is asked once: SAID is what the run then does. */
static int
steer(struct cli *c, enum etd_op op, const char *key, const char *value,
      const char *said)
{
    struct steered run;
    struct etd_answer a;
    int code = find(c, c->arg[0], &run);
    if (code == CLI_OK)
        code = ask(c, &run, op, key, value, &a);
    if (code != CLI_OK)
        return code;
    if (c->opt.json)
        return cli_print_json(json_of(&run, op, key, value, &a));
    if (!c->opt.quiet)
        et_print(stdout, "%s %s, after batch %lld\n", run.name, said,
                 (long long)a.step);
    return CLI_OK;
}

static int
steer_simply(struct cli *c, enum etd_op op, const char *said)
{
    if (c->n_args != 1)
        return cli_fail(c, CLI_E_OPERAND, "etude runs lists them", "%s takes one run",
                        etd_op_name(op));
    return steer(c, op, NULL, NULL, said);
}

/* ---- the commands ---- */

int
cli_stop(struct cli *c)
{
    return steer_simply(c, ETD_OP_STOP, "saves and ends");
}

int
cli_kill(struct cli *c)
{
    char rank[32], said[64];
    if (c->opt.rank < 0 || c->n_args != 1)
        return steer_simply(c, ETD_OP_KILL, "has been ended");
    snprintf(rank, sizeof rank, "%lld", (long long)c->opt.rank);
    snprintf(said, sizeof said, "has lost rank %s", rank);
    return steer(c, ETD_OP_KILL, NULL, rank, said);
}

int
cli_pause(struct cli *c)
{
    return steer_simply(c, ETD_OP_PAUSE, "is paused");
}

int
cli_continue(struct cli *c)
{
    return steer_simply(c, ETD_OP_CONTINUE, "goes on");
}

int
cli_checkpoint(struct cli *c)
{
    return steer_simply(c, ETD_OP_CHECKPOINT, "saves");
}

int
cli_take(struct cli *c)
{
    return steer_simply(c, ETD_OP_TAKE, "is yours to steer, for 30 s");
}

/* "on OPTION=VALUE ..." into VALUE: false where that has no room, or a value has
 * blanks, which stand between them. */
static bool
add_options(const struct cli *c, char *value, size_t size)
{
    size_t used = strlen(value);
    for (int i = 0; i < c->n_overrides; i++) {
        const char *text = c->override[i].text;
        int n = snprintf(value + used, size - used, " %s", text);
        used += n > 0 ? (size_t)n : 0;
        if (n < 0 || used >= size || strchr(text, ' '))
            return false;
    }
    return true;
}

int
cli_algo(struct cli *c)
{
    char said[2 * ETD_WORD], value[ETD_WORD];
    bool on = c->n_args == 3 && strcmp(c->arg[2], "on") == 0;
    if (c->n_args != 3 || (!on && strcmp(c->arg[2], "off") != 0))
        return cli_fail(c, CLI_E_OPERAND, "etude algo brisk-otter cutout on",
                        "algo takes a run, an algorithm, and on or off");
    if (c->n_overrides > 0 && !on)
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "options are for an algorithm that is switched on");
    snprintf(value, sizeof value, "%s", c->arg[2]);
    if (!add_options(c, value, sizeof value))
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "algo: options have at most %d bytes, and no blanks",
                        ETD_WORD - 1);
    snprintf(said, sizeof said, "has %.150s %s", c->arg[1], c->arg[2]);
    return steer(c, ETD_OP_ALGO, c->arg[1], value, said);
}

int
cli_loglevel(struct cli *c)
{
    char said[ETD_WORD];
    bool is_level = false;
    for (int i = ET_LOG_DEBUG; c->n_args == 2 && i <= ET_LOG_ERROR; i++)
        is_level =
            is_level || strcmp(c->arg[1], et_log_level_name((enum et_log_level)i)) == 0;
    if (!is_level)
        return cli_fail(c, CLI_E_OPERAND, "etude loglevel brisk-otter debug",
                        "loglevel takes a run, and debug, info, warn or error");
    snprintf(said, sizeof said, "logs what is %s or worse", c->arg[1]);
    return steer(c, ETD_OP_LOGLEVEL, NULL, c->arg[1], said);
}

/* Sends them one after another. The first that is refused ends that; those before it
 * stay in force. */
int
cli_set(struct cli *c)
{
    struct steered run;
    struct etd_answer a;
    if (c->n_args != 1 || c->n_overrides == 0)
        return cli_fail(c, CLI_E_OPERAND, "etude set brisk-otter optimizer.lr=0.05",
                        "set takes a run and at least one key=value");
    int code = find(c, c->arg[0], &run);
    json_t *all = json_array();
    for (int i = 0; i < c->n_overrides && code == CLI_OK; i++) {
        const char *text = c->override[i].text, *equals = strchr(text, '=');
        char key[ETD_WORD];
        if (equals - text >= ETD_WORD || !equals[1]) {
            code = cli_fail(c, CLI_E_OPERAND, NULL, "'%s' is no key=value", text);
            break;
        }
        snprintf(key, sizeof key, "%.*s", (int)(equals - text), text);
        code = ask(c, &run, ETD_OP_SET, key, equals + 1, &a);
        if (code == CLI_OK && c->opt.json)
            (void)json_array_append_new(all,
                                        json_of(&run, ETD_OP_SET, key, equals + 1, &a));
        else if (code == CLI_OK && !c->opt.quiet)
            et_print(stdout, "%s has %s, %s, after batch %lld\n", run.name, text,
                     a.text, (long long)a.step);
    }
    if (c->opt.json && (code == CLI_OK || json_array_size(all) > 0))
        return cli_print_json(all) == CLI_OK ? code : CLI_BUG;
    json_decref(all);
    return code;
}

/* ---- notes ---- */

/* One that has ended: its process closes the log in a moment, and so does who else
 * annotates it. ECANCELED: somebody goes on to write it. */
static et_status
note_ended(struct cli *c, const struct steered *run, const char *text, int64_t *ba)
{
    const struct timespec pause = {0, 20000000L};
    struct et_record note;
    int64_t cut = 0;
    et_status status = eti_events_annotate(c->cx, run->ended, text, &cut, &note);
    for (int tries = 0; status == ET_ECANCELED && tries < LOG_TRIES; tries++) {
        et_error_clear(c->cx);
        nanosleep(&pause, NULL);
        status = eti_events_annotate(c->cx, run->ended, text, &cut, &note);
    }
    ET_TRY(status);
    if (cut > 0)
        et_report(c->cx, ET_LOG_WARN,
                  "the log ended in the middle of a record; its %lld bytes are cut off",
                  (long long)cut);
    cli_run_remember(c, run->ended);
    *ba = note.ba;
    return ET_OK;
}

int
cli_annotate(struct cli *c)
{
    struct steered run;
    struct etd_answer a;
    if (c->n_args != 2 || !*c->arg[1])
        return cli_fail(c, CLI_E_OPERAND,
                        "etude annotate brisk-otter \"moved to the other disk\"",
                        "annotate takes a run and a text, in quotes if it has blanks");
    char text[ET_VISIBLE_MAX + 1];
    et_visible(text, sizeof text, c->arg[1], strlen(c->arg[1]));
    int code = find(c, c->arg[0], &run);
    et_status status =
        code == CLI_OK && *run.ended ? note_ended(c, &run, text, &a.step) : ET_OK;
    if (status == ET_ECANCELED)
        return cli_fail(c, CLI_E_BUSY, "annotate it when it has ended", "%s",
                        et_error_get(c->cx)->message);
    if (status != ET_OK)
        return cli_fail_status(
            c, status == ET_EFORMAT ? ETI_STAGE_DATA : ETI_STAGE_OUTPUT, status);
    if (code == CLI_OK && !*run.ended)
        code = ask(c, &run, ETD_OP_ANNOTATE, NULL, text, &a);
    if (code == CLI_OK && c->opt.json)
        return cli_print_json(json_pack("{s:s, s:I, s:f, s:s}", "name", run.name, "ba",
                                        (json_int_t)a.step, "t", eti_wall(c->cx),
                                        "text", text));
    return code;
}
