/* SPDX-License-Identifier: Apache-2.0 */
/* wandb.c: what `wandb sync` sends to Weights & Biases.
 *
 *     wandb/offline-run-20251120_135638-1f2e3d4c/run-1f2e3d4c.wandb
 *
 * A row for each count of finished batches, with the numbers of the batch and of an
 * evaluation behind it; the resolved recipe as the configuration; at the end, and at
 * each evaluation, the newest value of everything as the summary. Nothing is sent from
 * here. A run that is resumed adds a folder with the same id, which `wandb sync
 * --append` puts behind the first.
 *
 * Source: MosaicML Composer, WandBLogger. Differs: no mode but offline, no
 * artifacts. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/loggers/given.h"
#include "core/loggers/wandb_file.h"

static const double stale_seconds = 30; /* between writes to the file, at most */
enum { ID = 8, FLUSH = 100, PATH_BYTES = 4096 };

enum mode { OFFLINE };
static const char *const modes[] = {"offline", NULL};

struct options {
    int mode;
    char *project, *entity, *group, *log_dir;
};

#define TEXT(field_name)                                                               \
    .name = #field_name, .type = ET_OPT_TEXT,                                          \
    .offset = offsetof(struct options, field_name)
static const struct et_option option_table[] = {
    {
        .name = "mode",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, mode),
        .def = "offline",
        .choices = modes,
        .help = "files, which wandb sync sends when it is told to",
    },
    {TEXT(project), .flags = ET_OPT_OPTIONAL,
     .help = "project; without one the recipe's name"},
    {TEXT(entity), .flags = ET_OPT_OPTIONAL,
     .help = "team or user; without one who logged in"},
    {TEXT(group), .flags = ET_OPT_OPTIONAL, .help = "group of runs"},
    {TEXT(log_dir), .def = "wandb", .flags = ET_OPT_OUTPUT,
     .help = "folder in the run directory"},
    {.name = NULL},
};

struct last {
    char name[ET_METRIC_NAME];
    double value;
};

struct state {
    struct eti_wandb_file out;
    struct eti_given given;
    double began;           /* seconds since 1970 */
    struct eti_message row; /* of STEP; empty: no row is under way */
    int64_t step;
    struct last *last; /* the newest value of each name */
    int n, room;
    double flushed; /* monotonic */
    int64_t since_flush;
    bool ended;
};

/* ---- rows ---- */

static void
put_number(struct eti_message *row, const char *name, double value)
{
    char text[ETI_NUMBER];
    eti_wandb_item(row, 1, name, eti_wandb_number(value, text));
}

/* To the millisecond: nine digits would not do for seconds since 1970. */
static void
put_seconds(struct eti_message *row, const char *name, double seconds)
{
    char text[ETI_NUMBER];
    text[eti_put_fixed(text, seconds, 3)] = '\0';
    eti_wandb_item(row, 1, name, text);
}

static void
put_row(struct state *l)
{
    unsigned char text[16], *p;
    if (l->row.n == 0)
        return;
    p = eti_pb_varint(eti_pb_key(text, 1, ETI_PB_VARINT), (uint64_t)l->step);
    eti_message_bytes(&l->row, 2, text, (size_t)(p - text));
    eti_wandb_put(&l->out, ETI_WANDB_HISTORY, &l->row);
}

/* The row of what is measured now: that of the batch, behind which an evaluation is. */
static void
begin_row(struct state *l, double now, int64_t step)
{
    if (l->row.n > 0 && l->step == step)
        return;
    put_row(l);
    l->step = step;
    put_number(&l->row, "_step", (double)step);
    put_seconds(&l->row, "_timestamp", now);
    put_seconds(&l->row, "_runtime", now - l->began);
}

/* Records are much alike: the name is likely the one behind the last. */
static void
note(struct et_ctx *cx, struct state *l, const char *name, double value, int *hint)
{
    int i = *hint;
    if (i >= l->n || strcmp(l->last[i].name, name) != 0)
        for (i = 0; i < l->n && strcmp(l->last[i].name, name) != 0;)
            i++;
    if (i == l->n && l->n == l->room) {
        const int room = l->room ? 2 * l->room : 64;
        void *block;
        if (et_alloc(cx, (size_t)room * sizeof *l->last, &block) != ET_OK) {
            et_error_clear(cx); /* the summary lacks it, the rows do not */
            return;
        }
        if (l->n > 0)
            memcpy(block, l->last, (size_t)l->n * sizeof *l->last);
        et_free(cx, l->last);
        l->last = block;
        l->room = room;
    }
    if (i == l->n)
        snprintf(l->last[l->n++].name, sizeof l->last->name, "%s", name);
    l->last[i].value = value;
    *hint = i + 1;
}

static void
take(struct et_callback *self, const struct et_state *s, const struct et_log *log)
{
    struct state *l = self->state;
    int n, hint = 0;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    begin_row(l, eti_wall(self->cx), s->timestamp.batch);
    for (int i = 0; i < n; i++) {
        put_number(&l->row, entry[i].name, entry[i].value);
        note(self->cx, l, entry[i].name, entry[i].value, &hint);
    }
}

static void
put_summary(struct state *l)
{
    struct eti_message body = {.cx = l->row.cx};
    put_row(l);
    for (int i = 0; i < l->n; i++)
        put_number(&body, l->last[i].name, l->last[i].value);
    put_number(&body, "_step", (double)l->step);
    eti_wandb_put(&l->out, ETI_WANDB_SUMMARY, &body);
    eti_message_release(&body);
}

static void
put_exit(struct et_callback *self, int code)
{
    struct state *l = self->state;
    struct eti_message body = {.cx = self->cx};
    if (l->ended || !l->out.file.f)
        return;
    put_summary(l);
    eti_message_varint(&body, 1, (uint64_t)code);
    eti_message_varint(&body, 2, (uint64_t)fmax(0, eti_wall(self->cx) - l->began));
    eti_wandb_put(&l->out, ETI_WANDB_EXIT, &body);
    eti_message_release(&body);
    l->ended = true;
}

/* ---- the run ---- */

static void
put_value(void *data, const char *key, const struct et_value *v)
{
    char number[ETI_NUMBER], *text = NULL;
    if (v->type == ET_VALUE_STRING) {
        json_t *string = json_string(v->text);
        text = json_dumps(string, JSON_ENCODE_ANY);
        json_decref(string);
    }
    eti_wandb_item(data, 1, key,
                   v->type == ET_VALUE_BOOL   ? (v->b ? "true" : "false")
                   : v->type == ET_VALUE_NULL ? "null"
                   : v->type == ET_VALUE_STRING
                       ? (text ? text : "null")
                       : eti_wandb_number(eti_value_number(v), number));
    free(text);
}

static void
put_run(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct state *l = self->state;
    struct eti_message body = {.cx = self->cx}, inner = body;
    char id[ID + 1];
    const double seconds = floor(l->began);
    snprintf(id, sizeof id, "%.*s", ID, l->given.id);
    eti_wandb_put(&l->out, ETI_WANDB_HEADER, &body);
    eti_message_text(&body, 1, id);
    if (o->entity)
        eti_message_text(&body, 2, o->entity);
    eti_message_text(&body, 3, o->project ? o->project : l->given.recipe);
    if (eti_given_recipe(self->cx, self->run_directory, put_value, &inner) != ET_OK)
        et_error_clear(self->cx); /* the rows are there without it */
    eti_message_add(&body, 4, &inner);
    if (o->group)
        eti_message_text(&body, 6, o->group);
    eti_message_text(&body, 8, l->given.name);
    eti_message_varint(&body, 14, (uint64_t)s->timestamp.batch);
    eti_message_clear(&inner);
    eti_message_varint(&inner, 1, (uint64_t)seconds);
    eti_message_varint(&inner, 2, (uint64_t)((l->began - seconds) * 1e9));
    eti_message_add(&body, 17, &inner);
    if (s->timestamp.batch > 0)
        eti_message_varint(&body, 18, true);
    eti_wandb_put(&l->out, ETI_WANDB_RUN, &body);
    eti_message_release(&body);
    eti_message_release(&inner);
}

/* Makes the folder "offline-run-20251120_135638-1f2e3d4c", of a second that has none
 * yet: NAME, of the file in it, begins with the folder's. */
static et_status
make_folder(struct et_callback *self, char *name, size_t size)
{
    const struct options *o = self->options;
    const struct state *l = self->state;
    int (*const make)(int, const char *, mode_t) =
        eti_ctx_seams(self->cx)->file.make_folder;
    char path[PATH_BYTES], stamp[32];
    struct tm day;
    if (!self->run_directory)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "%s needs a run directory, and there is none", o->log_dir);
    int n = snprintf(path, sizeof path, "%s/%s", self->run_directory, o->log_dir);
    if (n >= (int)sizeof path - 80)
        return ET_FAIL(self->cx, ET_EINVAL, "the path of %s is too long", o->log_dir);
    if (make(AT_FDCWD, path, 0700) != 0 && errno != EEXIST)
        return ET_FAIL(self->cx, ET_EIO, "cannot make %s: %s", path, strerror(errno));
    for (time_t t = (time_t)l->began;; t++) {
        strftime(stamp, sizeof stamp, "%Y%m%d_%H%M%S", localtime_r(&t, &day));
        snprintf(name, size, "%s/offline-run-%s-%.*s", o->log_dir, stamp, ID,
                 l->given.id);
        snprintf(path, sizeof path, "%s/%s", self->run_directory, name);
        if (make(AT_FDCWD, path, 0700) == 0)
            break;
        if (errno != EEXIST)
            return ET_FAIL(self->cx, ET_EIO, "cannot make %s: %s", path,
                           strerror(errno));
    }
    return ET_OK;
}

static et_status
open_file(struct et_callback *self, const struct et_state *s)
{
    struct state *l = self->state;
    char folder[PATH_BYTES / 2], name[PATH_BYTES];
    l->began = eti_wall(self->cx);
    l->flushed = eti_monotonic(self->cx);
    l->row.cx = self->cx;
    l->step = s->timestamp.batch;
    if (self->run_directory)
        eti_given_read(self->run_directory, &l->given);
    ET_TRY(make_folder(self, folder, sizeof folder));
    snprintf(name, sizeof name, "%s/run-%.*s.wandb", folder, ID, l->given.id);
    ET_TRY(eti_wandb_open(self->cx, self->run_directory, name, &l->out));
    put_run(self, s);
    eti_output_flush(&l->out.file);
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct state *l = self->state;
    const double now = eti_monotonic(self->cx);
    if (event == ET_EVENT_AFTER_LOAD)
        return open_file(self, s);
    if (event == ET_EVENT_BATCH_END || event == ET_EVENT_EVAL_END)
        take(self, s, log);
    if (event == ET_EVENT_EVAL_END)
        put_summary(l);
    if (event == ET_EVENT_FIT_END)
        put_exit(self, 0);
    l->since_flush += event == ET_EVENT_BATCH_END;
    if (event == ET_EVENT_BATCH_END && l->since_flush < FLUSH &&
        now - l->flushed < stale_seconds)
        return ET_OK;
    eti_output_flush(&l->out.file);
    l->since_flush = 0;
    l->flushed = now;
    return ET_OK;
}

static void
close_file(struct et_callback *self)
{
    struct state *l = self->state;
    put_exit(self, 1); /* unless it came to its end */
    eti_wandb_close(&l->out);
    eti_message_release(&l->row);
    et_free(self->cx, l->last);
    l->last = NULL;
}

const struct et_callback_class et_logger_wandb = {
    .info =
        {
            .name = "wandb",
            .class_name = "WandBLogger",
            .summary = "wandb/: what wandb sync sends",
            .source = "MosaicML Composer, WandBLogger",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .is_logger = true,
    .events = ET_ON(AFTER_LOAD) | ET_ON(BATCH_END) | ET_ON(EVAL_END) |
              ET_ON(EPOCH_END) | ET_ON(FIT_END),
    .run = run,
    .close = close_file,
};
