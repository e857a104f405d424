/* SPDX-License-Identifier: Apache-2.0 */
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

#include "core/base/sized.h"
#include "core/optim/group.h"
#include "core/recipe/options.h"
#include "core/trainer/loop.h"
#include "core/trainer/part.h"
#include "core/trainer/ranks.h"
#include "core/trainer/request.h"

struct control {
    bool paused;      /* asked for, and not over yet */
    bool expected;    /* there may be a request: the last step said so */
    bool has_waiting; /* rank 0: WAITING is to be told to all */
    struct et_request waiting;
    int replayed;     /* of config.replay */
    int64_t from;     /* requests at fewer batches are part of the checkpoint */
    bool is_replay;   /* what is applied is the log's */
    bool is_past;     /* and the checkpoint's */
    bool is_lost;     /* a request left the run in a state from which it cannot go on */
    bool *superseded; /* [config.n_replay]: what has been asked anew; NULL: none */
};

enum { ANSWER = ET_REQUEST_ANSWER };
static const char refused[] = "refused: ";

/* ANSWER becomes the error that stands. */
static bool
refuse(struct eti_part *p, char *answer)
{
    snprintf(answer, ANSWER, "%s%.*s", refused, (int)(ANSWER - sizeof refused),
             et_error_get(p->s->cx)->message);
    et_error_clear(p->s->cx);
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
find_algorithm(struct eti_part *p, const char *name, size_t n)
{
    for (int i = 0; i < p->s->n_algorithms; i++) {
        const char *own = p->s->algorithms[i]->type->info.name;
        if (strlen(own) == n && strncmp(own, name, n) == 0)
            return p->s->algorithms[i];
    }
    return NULL;
}

/* TEXT, the end of KEY: "1.weight_decay". */
static et_status
find_group(struct eti_part *p, const char *key, const char *text, struct target *out)
{
    char *end;
    long i = strtol(text, &end, 10);
    if (end == text || *end != '.' || i < 0 || i >= p->config->n_groups)
        return ET_FAIL(p->s->cx, ET_EINVAL,
                       "%s: the run has %d parameter group%s, counted from 0", key,
                       p->config->n_groups, p->config->n_groups == 1 ? "" : "s");
    *out = (struct target){
        .info = &et_param_group_info,
        .options = p->config->groups[i],
        .name = end + 1,
    };
    return ET_OK;
}

static et_status
find_target(struct eti_part *p, const char *key, struct target *out)
{
    static const char optimizer[] = "optimizer.", algorithms[] = "algorithms.";
    static const char groups[] = "optimizer.groups.";
    struct et_ctx *cx = p->s->cx;
    if (strncmp(key, groups, strlen(groups)) == 0)
        return find_group(p, key, key + strlen(groups), out);
    if (strncmp(key, optimizer, strlen(optimizer)) == 0) {
        *out = (struct target){
            .info = &p->config->optimizer->info,
            .options = eti_optimizer_options(p->s->optimizer),
            .name = key + strlen(optimizer),
        };
        return ET_OK;
    }
    if (strncmp(key, algorithms, strlen(algorithms)) == 0) {
        const char *name = key + strlen(algorithms);
        size_t n = strcspn(name, ".");
        struct et_algorithm *a = find_algorithm(p, name, n);
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
    char mark = '\0';
    const struct et_option *row = eti_option_find(to->info->options, to->name);
    if (!row)
        row = eti_option_also(to->info->options, to->name, &mark);
    if (!row || mark == '~')
        return ET_FAIL(cx, ET_EINVAL, "%s has no option '%s'", to->info->name,
                       to->name);
    *out = row;
    return row->flags & ET_OPT_MAY_CHANGE
               ? ET_OK
               : ET_FAIL(cx, ET_EINVAL, "%s cannot be set while a run is under way",
                         key);
}

/* The table's rules, then the component's; where it breaks one nothing has changed. */
static et_status
set_option(struct eti_part *p, const struct target *to, const char *value,
           const char *old)
{
    struct et_ctx *cx = p->s->cx;
    ET_TRY(et_options_set(cx, to->info->options, to->options, to->name, value));
    et_status status = ET_OK;
    if (to->algorithm && to->algorithm->type->check)
        status = to->algorithm->type->check(cx, to->options);
    if (!to->algorithm && p->config->optimizer->check)
        status = p->config->optimizer->check(cx, to->options);
    if (status == ET_OK && !to->algorithm)
        status = eti_groups_follow(p->t);
    if (status != ET_OK &&
        et_options_set(cx, to->info->options, to->options, to->name, old) != ET_OK)
        return ET_EINTERNAL;
    return status;
}

static bool
set(struct eti_part *p, const struct et_request *r, char *answer)
{
    struct et_ctx *cx = p->s->cx;
    const struct et_option *row = NULL;
    struct target to = {0};
    char *old = NULL;
    et_status status = find_target(p, r->key, &to);
    if (status == ET_OK)
        status = find_option(cx, &to, r->key, &row);
    if (status == ET_OK)
        status = et_option_text(cx, row, to.options, &old);
    if (status == ET_OK)
        status = set_option(p, &to, r->value, old);
    if (status == ET_OK)
        snprintf(answer, ANSWER, "was %s", old);
    if (status == ET_OK && to.algorithm)
        eti_added_forget(p->t);
    et_free(cx, old);
    return status == ET_OK || refuse(p, answer);
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
join(struct eti_part *p, const char *name, const char *options, char *answer)
{
    char note[ANSWER];
    ET_TRY(eti_algorithm_join(p->t, name, options, note, sizeof note));
    snprintf(answer, ANSWER, ET_ANSWER_JOINED "%.*s",
             (int)(ANSWER - sizeof ET_ANSWER_JOINED), note);
    return ET_OK;
}

/* A run that goes on from a checkpoint has what had joined before it already, with the
 * options that it joined with, and the model as switches had changed it. */
static et_status
turn(struct eti_part *p, struct et_algorithm *a, bool on, const char *options,
     char *answer)
{
    const struct control *own = p->own;
    struct et_ctx *cx = p->s->cx;
    const char *name = a->type->info.name;
    if (!et_algorithm_switches(a->type))
        return ET_FAIL(cx, ET_EINVAL,
                       "%s changed the run before its first batch: that stays", name);
    if (*options && !(on && a->joined && own->is_replay))
        return ET_FAIL(cx, ET_EINVAL,
                       "the run has %s: its options are changed with etude set", name);
    snprintf(answer, ANSWER, "was %s", a->off ? "off" : "on");
    if (ETI_HOOK(a->type, undo))
        return own->is_past ? ET_OK : eti_switch(p->t, a, on);
    if (!on)
        ET_TRY(eti_algorithm_settle(p->t, a));
    a->off = !on;
    return ET_OK;
}

static bool
switch_algorithm(struct eti_part *p, const struct et_request *r, char *answer)
{
    struct control *own = p->own;
    struct et_ctx *cx = p->s->cx;
    struct et_algorithm *a = find_algorithm(p, r->key, strlen(r->key));
    bool on;
    const char *options = options_of(r->value, &on);
    et_status status;
    if (!options)
        status = ET_FAIL(cx, ET_EINVAL, "%s is switched on or off, not '%s'", r->key,
                         r->value);
    else if (a)
        status = turn(p, a, on, options, answer);
    else if (on)
        status = join(p, r->key, options, answer);
    else
        status = ET_FAIL(cx, ET_EINVAL, "the run has no algorithm %s", r->key);
    own->is_lost |= status == ET_EINTERNAL;
    return status == ET_OK || refuse(p, answer);
}

static bool
set_level(struct eti_part *p, const struct et_request *r, char *answer)
{
    struct et_control *c = p->config->control;
    for (int i = ET_LOG_DEBUG; c->level && i <= ET_LOG_ERROR; i++)
        if (strcmp(r->value, et_log_level_name((enum et_log_level)i)) == 0) {
            c->level(c, (enum et_log_level)i);
            snprintf(answer, ANSWER, "done");
            return true;
        }
    (void)ET_FAIL(p->s->cx, ET_EINVAL, "'%s' is not debug, info, warn or error",
                  r->value);
    return refuse(p, answer);
}

static void
say_state(struct eti_part *p, const char *state)
{
    struct et_record r = {.kind = ET_RECORD_RUN, .text = state};
    et_log_record(p->s->log, &r, &p->s->timestamp);
}

static bool
stop(struct eti_part *p, char *answer)
{
    struct control *own = p->own;
    own->paused = false;
    eti_ask_to_stop(p->t);
    say_state(p, "stopping");
    snprintf(answer, ANSWER, "stopping");
    return true;
}

static bool
save(struct eti_part *p, char *answer)
{
    if (!eti_ask_to_save(p->t)) {
        (void)ET_FAIL(p->s->cx, ET_EINVAL, "the run has no place to save to");
        return refuse(p, answer);
    }
    snprintf(answer, ANSWER, "saving");
    return true;
}

/* A rate that a slip of the finger made a billion would end the run: what is new has to
 * be in (0, 10], or below the rate that is (RELIABILITY.md section 9). What the log has
 * was let through before. */
static bool
is_sane(struct eti_part *p, const struct et_request *r, char *answer)
{
    const struct et_optimizer_options *common = p->config->optimizer_options;
    double most = fmax(10, common->lr);
    char *end;
    if (r->op != ET_REQUEST_SET || strcmp(r->key, "optimizer.lr") != 0)
        return true;
    double v = strtod(r->value, &end);
    if (end == r->value || *end || (v > 0 && v <= most))
        return true; /* what is no number the option's table refuses */
    (void)ET_FAIL(p->s->cx, ET_EINVAL, "%s %s outside (0, %g]: etude rerun takes any",
                  r->key, r->value, most);
    return refuse(p, answer);
}

static bool
apply(struct eti_part *p, const struct et_request *r, char *answer)
{
    struct control *own = p->own;
    switch (r->op) {
    case ET_REQUEST_SET:
        return set(p, r, answer);
    case ET_REQUEST_ALGO:
        return switch_algorithm(p, r, answer);
    case ET_REQUEST_LOGLEVEL:
        return set_level(p, r, answer);
    case ET_REQUEST_CHECKPOINT:
        return save(p, answer);
    case ET_REQUEST_STOP:
        return stop(p, answer);
    default: /* pause and continue: asked twice is as good as once */
        own->paused = r->op == ET_REQUEST_PAUSE;
        snprintf(answer, ANSWER, "%s", own->paused ? "paused" : "running");
        return true;
    }
}

/* ---- when ---- */

/* Those of the log up to now. They are in the log: nothing is said again. */
static void
replay(struct eti_part *p)
{
    struct control *own = p->own;
    char answer[ANSWER];
    if (p->common->resumed)
        own->from = p->s->timestamp.batch + 1;
    while (own->replayed < p->config->n_replay) {
        const struct et_request *r = &p->config->replay[own->replayed];
        if (r->step > p->s->timestamp.batch)
            return;
        int i = own->replayed++;
        if (own->superseded && own->superseded[i])
            continue;
        own->is_replay = true;
        own->is_past = r->step < own->from;
        bool applied = apply(p, r, answer);
        own->is_replay = own->is_past = false;
        if (!applied)
            et_log_text(p->s->log, ET_LOG_WARN, &p->s->timestamp,
                        "%s %s was applied before, and now is %s", r->key, r->value,
                        answer);
    }
}

/* R has been applied: what the log has of the same setting for batches to come was said
 * before it, on the way to a crash. */
static et_status
supersede(struct eti_part *p, const struct et_request *r)
{
    struct control *own = p->own;
    void *block;
    int n = p->config->n_replay, i = own->replayed;
    if (i == n)
        return ET_OK;
    if (!own->superseded) {
        ET_TRY(et_alloc(p->s->cx, (size_t)n * sizeof(bool), &block));
        own->superseded = block;
    }
    for (; i < n; i++)
        own->superseded[i] |= eti_request_same(&p->config->replay[i], r);
    return ET_OK;
}

/* "uid:1000 set optimizer.lr 0.05 -> was 0.1" */
static void
say(struct eti_part *p, const struct et_request *r, const char *answer)
{
    char what[ET_REQUEST_TEXT], text[ET_REQUEST_TEXT];
    const char *who = *r->who ? r->who : "-";
    int room = (int)(sizeof text - strlen(who) - strlen(answer) - sizeof "  -> ");
    struct et_record record = {.kind = ET_RECORD_COMMAND, .text = text};
    snprintf(text, sizeof text, "%s %.*s -> %s", who, room,
             et_request_text(r, what, sizeof what), answer);
    et_log_record(p->s->log, &record, &p->s->timestamp);
}

/* Rank 0's next request after STEP batches, *GOT on all ranks alike. */
static et_status
take_next(struct eti_part *p, int64_t step, struct et_request *out, bool *got)
{
    struct control *own = p->own;
    struct et_control *c = p->config->control;
    struct et_comm *comm = p->common->comm;
    struct {
        bool got;
        struct et_request request;
    } next = {0};
    if (!comm) {
        *got = c && c->next(c, step, out);
        return ET_OK;
    }
    if (p->s->rank == 0) {
        next.got = own->has_waiting;
        next.request = own->waiting;
        if (!next.got && c)
            next.got = c->next(c, step, &next.request);
        own->has_waiting = false;
    }
    et_comm_set_mark(comm, -1, ETI_AT_REQUEST, 0);
    ET_TRY(et_comm_broadcast(p->s->cx, comm, &next, sizeof next, 0));
    *got = next.got;
    *out = next.request;
    return ET_OK;
}

static et_status
poll(struct eti_part *p)
{
    struct control *own = p->own;
    struct et_control *c = p->config->control;
    int64_t step = p->s->timestamp.batch;
    struct et_request r;
    char answer[ANSWER];
    bool got = !p->common->comm || own->expected;
    replay(p);
    while (got) {
        ET_TRY(take_next(p, step, &r, &got));
        if (!got)
            break;
        bool applied = is_sane(p, &r, answer) && apply(p, &r, answer);
        if (applied)
            ET_TRY(supersede(p, &r));
        say(p, &r, answer);
        if (c && p->s->rank == 0)
            c->done(c, &r, step, applied, answer);
        if (own->is_lost)
            return ET_FAIL(p->s->cx, ET_EINTERNAL, "%s", answer + sizeof refused - 1);
    }
    own->expected = false;
    return ET_OK;
}

et_status
eti_control_poll(struct et_trainer *t)
{
    return poll(eti_part_of(t, ETI_PART_CONTROL));
}

void
eti_control_expect(struct et_trainer *t)
{
    struct control *own = eti_part_own(t, ETI_PART_CONTROL);
    own->expected = true;
}

et_status
eti_control_hold(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_CONTROL);
    struct control *own = p->own;
    struct et_control *c = p->config->control;
    if (!own->paused)
        return ET_OK;
    ET_TRY(eti_readback_deliver(t, 0));
    say_state(p, "paused");
    while (own->paused && !eti_interrupted(t)) {
        if (c)
            c->wait(c);
        own->expected = true; /* no step tells the other ranks */
        ET_TRY(poll(p));
        ET_TRY(eti_listen_for_stop(t));
        if (eti_save_is_asked(t))
            ET_TRY(eti_checkpoint(t, ET_EVENT_BATCH_CHECKPOINT));
    }
    eti_clock_start(t); /* a pause is no part of a batch's time */
    if (eti_interrupted(t))
        return eti_checkpoint(t, ET_EVENT_BATCH_CHECKPOINT);
    say_state(p, "running");
    return ET_OK;
}

/* ---- as a part ---- */

/* Rank 0 alone is asked: requests are applied by all after the same batch. */
static float
count_waiting(struct eti_part *p)
{
    struct control *own = p->own;
    struct et_control *c = p->config->control;
    if (!own->has_waiting && c && p->s->rank == 0 && !p->common->is_trial)
        own->has_waiting = c->next(c, p->s->timestamp.batch + 1, &own->waiting);
    return own->has_waiting;
}

static void
hear(struct eti_part *p, float sum, bool again)
{
    struct control *own = p->own;
    (void)again;
    own->expected = sum > 0;
}

static void
release(struct eti_part *p)
{
    struct control *own = p->own;
    et_free(p->s->cx, own->superseded);
    own->superseded = NULL;
}

const struct eti_part_type eti_part_control = {
    .size = sizeof(struct control),
    .release = release,
    .say = count_waiting,
    .hear = hear,
};
