/* control.c: requests to a run, applied between two batches. See control.h.
 *
 * They are taken at the end of a batch, before its evaluations and its checkpoint: a
 * stop is saved by that checkpoint. Options and switches are no part of a checkpoint;
 * one that is resumed is given the log's requests again, those of earlier batches
 * before anything else happens. What has joined by request (join.c) is part of it. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"

enum { ANSWER = ET_REQUEST_ANSWER };
static const char refused[] = "refused: ";

/* ANSWER becomes the error that stands. */
static bool
refuse(struct et_trainer *t, char *answer)
{
    snprintf(answer, ANSWER, "%s%.*s", refused, (int)(ANSWER - sizeof refused),
             et_error_get(t->state.cx)->message);
    et_error_clear(t->state.cx);
    return false;
}

/* ---- set ---- */

/* Where the value of a key is, and who looks at it. */
struct target {
    const struct et_component *info;
    void *options;
    struct et_algorithm *algorithm; /* NULL: it is the optimizer's */
    const char *name;               /* of the option */
};

static struct et_algorithm *
find_algorithm(struct et_trainer *t, const char *name, size_t n)
{
    for (int i = 0; i < t->state.n_algorithms; i++) {
        const char *own = t->state.algorithms[i]->type->info.name;
        if (strlen(own) == n && strncmp(own, name, n) == 0)
            return t->state.algorithms[i];
    }
    return NULL;
}

/* TEXT, the end of KEY: "1.weight_decay". */
static et_status
find_group(struct et_trainer *t, const char *key, const char *text, struct target *out)
{
    char *end;
    long i = strtol(text, &end, 10);
    if (end == text || *end != '.' || i < 0 || i >= t->config.n_groups)
        return ET_FAIL(t->state.cx, ET_EINVAL,
                       "%s: the run has %d parameter group%s, counted from 0", key,
                       t->config.n_groups, t->config.n_groups == 1 ? "" : "s");
    *out = (struct target){
        .info = &et_param_group_info,
        .options = t->config.groups[i],
        .name = end + 1,
    };
    return ET_OK;
}

static et_status
find_target(struct et_trainer *t, const char *key, struct target *out)
{
    static const char optimizer[] = "optimizer.", algorithms[] = "algorithms.";
    static const char groups[] = "optimizer.groups.";
    struct et_ctx *cx = t->state.cx;
    if (strncmp(key, groups, strlen(groups)) == 0)
        return find_group(t, key, key + strlen(groups), out);
    if (strncmp(key, optimizer, strlen(optimizer)) == 0) {
        *out = (struct target){
            .info = &t->config.optimizer->info,
            /* Made for this run, and its own: assemble.c, setup.c. */
            .options = (void *)(uintptr_t)t->config.optimizer_options,
            .name = key + strlen(optimizer),
        };
        return ET_OK;
    }
    if (strncmp(key, algorithms, strlen(algorithms)) == 0) {
        const char *name = key + strlen(algorithms);
        size_t n = strcspn(name, ".");
        struct et_algorithm *a = find_algorithm(t, name, n);
        if (!a)
            return ET_FAIL(cx, ET_EINVAL, "the run has no algorithm %.*s", (int)n,
                           name);
        *out = (struct target){
            .info = &a->type->info,
            .options = a->options,
            .algorithm = a,
            .name = name[n] ? name + n + 1 : "",
        };
        return ET_OK;
    }
    return ET_FAIL(cx, ET_EINVAL, "%s cannot be set while a run is under way", key);
}

static et_status
find_option(struct et_ctx *cx, const struct target *to, const char *key,
            const struct et_option **out)
{
    for (const struct et_option *row = to->info->options; row && row->name; row++)
        if (strcmp(row->name, to->name) == 0) {
            *out = row;
            return row->flags & ET_OPT_MAY_CHANGE
                       ? ET_OK
                       : ET_FAIL(cx, ET_EINVAL,
                                 "%s cannot be set while a run is under way", key);
        }
    return ET_FAIL(cx, ET_EINVAL, "%s has no option '%s'", to->info->name, to->name);
}

/* The table's rules, then the component's; where it breaks one nothing has changed. */
static et_status
set_option(struct et_trainer *t, const struct target *to, const char *value,
           const char *old)
{
    struct et_ctx *cx = t->state.cx;
    ET_TRY(et_options_set(cx, to->info->options, to->options, to->name, value));
    et_status status = ET_OK;
    if (to->algorithm && to->algorithm->type->check)
        status = to->algorithm->type->check(cx, to->options);
    if (!to->algorithm && t->config.optimizer->check)
        status = t->config.optimizer->check(cx, to->options);
    if (status == ET_OK && !to->algorithm)
        status = eti_groups_follow(t);
    if (status != ET_OK &&
        et_options_set(cx, to->info->options, to->options, to->name, old) != ET_OK)
        return ET_EINTERNAL;
    return status;
}

static bool
set(struct et_trainer *t, const struct et_request *r, char *answer)
{
    struct et_ctx *cx = t->state.cx;
    const struct et_option *row = NULL;
    struct target to = {0};
    char *old = NULL;
    et_status status = find_target(t, r->key, &to);
    if (status == ET_OK)
        status = find_option(cx, &to, r->key, &row);
    if (status == ET_OK)
        status = et_option_text(cx, row, to.options, &old);
    if (status == ET_OK)
        status = set_option(t, &to, r->value, old);
    if (status == ET_OK)
        snprintf(answer, ANSWER, "was %s", old);
    et_free(cx, old);
    return status == ET_OK || refuse(t, answer);
}

/* ---- the others ---- */

/* What VALUE, "on" or "off" with what follows it, asks for; NULL: neither. */
static const char *
options_of(const char *value, bool *on)
{
    size_t n = strcspn(value, " ");
    *on = n == 2 && strncmp(value, "on", n) == 0;
    if (!*on && !(n == 3 && strncmp(value, "off", n) == 0))
        return NULL;
    return value + n + strspn(value + n, " ");
}

static et_status
join(struct et_trainer *t, const char *name, const char *options, char *answer)
{
    char note[ANSWER];
    ET_TRY(eti_algorithm_join(t, name, options, note, sizeof note));
    snprintf(answer, ANSWER, ET_ANSWER_JOINED "%.*s",
             (int)(ANSWER - sizeof ET_ANSWER_JOINED), note);
    return ET_OK;
}

/* A run that goes on from a checkpoint has what had joined before it already, with the
 * options that it joined with. */
static et_status
turn(struct et_trainer *t, struct et_algorithm *a, bool on, const char *options,
     char *answer)
{
    struct et_ctx *cx = t->state.cx;
    const char *name = a->type->info.name;
    if (!et_algorithm_switches(a->type))
        return ET_FAIL(cx, ET_EINVAL,
                       "%s changed the run before its first batch: that stays", name);
    if (*options && !(on && a->joined && t->controlled.is_replay))
        return ET_FAIL(cx, ET_EINVAL,
                       "the run has %s: its options are changed with etude set", name);
    if (!on)
        ET_TRY(eti_algorithm_settle(t, a));
    snprintf(answer, ANSWER, "was %s", a->off ? "off" : "on");
    a->off = !on;
    return ET_OK;
}

static bool
switch_algorithm(struct et_trainer *t, const struct et_request *r, char *answer)
{
    struct et_ctx *cx = t->state.cx;
    struct et_algorithm *a = find_algorithm(t, r->key, strlen(r->key));
    bool on;
    const char *options = options_of(r->value, &on);
    et_status status;
    if (!options)
        status = ET_FAIL(cx, ET_EINVAL, "%s is switched on or off, not '%s'", r->key,
                         r->value);
    else if (a)
        status = turn(t, a, on, options, answer);
    else if (on)
        status = join(t, r->key, options, answer);
    else
        status = ET_FAIL(cx, ET_EINVAL, "the run has no algorithm %s", r->key);
    return status == ET_OK || refuse(t, answer);
}

static bool
set_level(struct et_trainer *t, const struct et_request *r, char *answer)
{
    struct et_control *c = t->config.control;
    for (int i = ET_LOG_DEBUG; c->level && i <= ET_LOG_ERROR; i++)
        if (strcmp(r->value, et_log_level_name((enum et_log_level)i)) == 0) {
            c->level(c, (enum et_log_level)i);
            snprintf(answer, ANSWER, "done");
            return true;
        }
    (void)ET_FAIL(t->state.cx, ET_EINVAL, "'%s' is not debug, info, warn or error",
                  r->value);
    return refuse(t, answer);
}

static void
say_state(struct et_trainer *t, const char *state)
{
    struct et_record r = {.kind = ET_RECORD_RUN, .text = state};
    et_log_record(t->state.log, &r, &t->state.timestamp);
}

static bool
stop(struct et_trainer *t, char *answer)
{
    t->controlled.stop = true;
    t->controlled.paused = false;
    say_state(t, "stopping");
    snprintf(answer, ANSWER, "stopping");
    return true;
}

static bool
save(struct et_trainer *t, char *answer)
{
    if (!t->saver) {
        (void)ET_FAIL(t->state.cx, ET_EINVAL, "the run has no place to save to");
        return refuse(t, answer);
    }
    t->controlled.save = true;
    snprintf(answer, ANSWER, "saving");
    return true;
}

/* A rate that a slip of the finger made a billion would end the run: what is new has to
 * be in (0, 10], or below the rate that is (RELIABILITY.md section 9). What the log has
 * was let through before. */
static bool
is_sane(struct et_trainer *t, const struct et_request *r, char *answer)
{
    const struct et_optimizer_options *common = t->config.optimizer_options;
    double most = fmax(10, common->lr);
    char *end;
    if (r->op != ET_REQUEST_SET || strcmp(r->key, "optimizer.lr") != 0)
        return true;
    double v = strtod(r->value, &end);
    if (end == r->value || *end || (v > 0 && v <= most))
        return true; /* what is no number the option's table refuses */
    (void)ET_FAIL(t->state.cx, ET_EINVAL,
                  "%s %s outside (0, %g]: etude rerun takes any", r->key, r->value,
                  most);
    return refuse(t, answer);
}

static bool
apply(struct et_trainer *t, const struct et_request *r, char *answer)
{
    switch (r->op) {
    case ET_REQUEST_SET:
        return set(t, r, answer);
    case ET_REQUEST_ALGO:
        return switch_algorithm(t, r, answer);
    case ET_REQUEST_LOGLEVEL:
        return set_level(t, r, answer);
    case ET_REQUEST_CHECKPOINT:
        return save(t, answer);
    case ET_REQUEST_STOP:
        return stop(t, answer);
    default: /* pause and continue: asked twice is as good as once */
        t->controlled.paused = r->op == ET_REQUEST_PAUSE;
        snprintf(answer, ANSWER, "%s", t->controlled.paused ? "paused" : "running");
        return true;
    }
}

/* ---- when ---- */

/* Those of the log up to now. They are in the log: nothing is said again. */
static void
replay(struct et_trainer *t)
{
    char answer[ANSWER];
    while (t->controlled.replayed < t->config.n_replay) {
        const struct et_request *r = &t->config.replay[t->controlled.replayed];
        if (r->step > t->state.timestamp.batch)
            return;
        int i = t->controlled.replayed++;
        if (t->controlled.superseded && t->controlled.superseded[i])
            continue;
        t->controlled.is_replay = true;
        bool applied = apply(t, r, answer);
        t->controlled.is_replay = false;
        if (!applied)
            et_log_text(t->state.log, ET_LOG_WARN, &t->state.timestamp,
                        "%s %s was applied before, and now is %s", r->key, r->value,
                        answer);
    }
}

/* R has been applied: what the log has of the same setting for batches to come was said
 * before it, on the way to a crash. */
static et_status
supersede(struct et_trainer *t, const struct et_request *r)
{
    void *block;
    int n = t->config.n_replay, i = t->controlled.replayed;
    if (i == n)
        return ET_OK;
    if (!t->controlled.superseded) {
        ET_TRY(et_alloc(t->state.cx, (size_t)n * sizeof(bool), &block));
        t->controlled.superseded = block;
    }
    for (; i < n; i++)
        t->controlled.superseded[i] |= eti_request_same(&t->config.replay[i], r);
    return ET_OK;
}

/* "uid:1000 set optimizer.lr 0.05 -> was 0.1" */
static void
say(struct et_trainer *t, const struct et_request *r, const char *answer)
{
    char what[ET_REQUEST_TEXT], text[ET_REQUEST_TEXT];
    const char *who = *r->who ? r->who : "-";
    int room = (int)(sizeof text - strlen(who) - strlen(answer) - sizeof "  -> ");
    struct et_record record = {.kind = ET_RECORD_COMMAND, .text = text};
    snprintf(text, sizeof text, "%s %.*s -> %s", who, room,
             et_request_text(r, what, sizeof what), answer);
    et_log_record(t->state.log, &record, &t->state.timestamp);
}

et_status
eti_control_poll(struct et_trainer *t)
{
    struct et_control *c = t->config.control;
    int64_t step = t->state.timestamp.batch;
    struct et_request r;
    char answer[ANSWER];
    bool got = !t->ranks.comm || t->ranks.requested;
    replay(t);
    while (got) {
        ET_TRY(eti_ranks_next_request(t, step, &r, &got));
        if (!got)
            break;
        bool applied = is_sane(t, &r, answer) && apply(t, &r, answer);
        if (applied)
            ET_TRY(supersede(t, &r));
        say(t, &r, answer);
        if (c && t->state.rank == 0)
            c->done(c, &r, step, applied, answer);
    }
    t->ranks.requested = false;
    return ET_OK;
}

et_status
eti_control_hold(struct et_trainer *t)
{
    struct et_control *c = t->config.control;
    if (!t->controlled.paused)
        return ET_OK;
    ET_TRY(eti_readback_deliver(t, 0));
    say_state(t, "paused");
    while (t->controlled.paused && !eti_interrupted(t)) {
        if (c)
            c->wait(c);
        t->ranks.requested = true; /* no step tells the other ranks */
        ET_TRY(eti_control_poll(t));
        ET_TRY(eti_ranks_listen(t));
        if (t->controlled.save)
            ET_TRY(eti_checkpoint(t, ET_EVENT_BATCH_CHECKPOINT));
    }
    t->clock = eti_monotonic(t->state.cx); /* a pause is no part of a batch's time */
    if (eti_interrupted(t))
        return eti_checkpoint(t, ET_EVENT_BATCH_CHECKPOINT);
    say_state(t, "running");
    return ET_OK;
}
