/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor_files.c: files of a run that are removed while it goes on. People and
 * machines clean up, and a process does not notice: it writes on, into a file without a
 * name. So once a second the supervisor looks whether the files are there. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "dist/run/supervisor.h"

static const double LOOK_SECONDS = 1;

static bool
is_there(const struct etd_supervisor *s, const char *name)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", s->directory, name);
    return lstat(path, &st) == 0 || errno != ENOENT;
}

/* It is made again, whole: this process has it open. */
static void
look_at_events(struct etd_supervisor *s)
{
    bool there = is_there(s, "events.log");
    if (there || !s->events_seen) {
        s->events_seen = there;
        return;
    }
    s->events_seen = et_run_restore(s->run) == ET_OK;
    if (s->events_seen)
        etd_sup_say(s, ET_LOG_WARN, "%s/events.log was removed: it is made again",
                    s->directory);
    else
        etd_sup_say(s, ET_LOG_WARN,
                    "%s/events.log was removed, and cannot be made again: %s; what the "
                    "run says from now on is not kept; viewers that are there go on",
                    s->directory, et_error_get(s->cx)->message);
    et_error_clear(s->cx);
}

void
etd_sup_look_at_files(struct etd_supervisor *s)
{
    struct stat st;
    double t = etd_sup_now(s);
    if (!s->run || t - s->files_looked < LOOK_SECONDS)
        return;
    s->files_looked = t;
    bool there = is_there(s, "");
    if (!there && s->directory_seen)
        etd_sup_say(s, ET_LOG_WARN,
                    "%s was removed: nothing of this run is kept, and what it saves "
                    "fails",
                    s->directory);
    s->directory_seen = there;
    if (there)
        look_at_events(s);
    /* (Those that are written by line are made again by whoever does: loggers.h.) */
    for (int i = 0; i < s->l->nproc && there; i++)
        if (s->rank[i].log >= 0 && fstat(s->rank[i].log, &st) == 0 && st.st_nlink == 0)
            etd_sup_open_log(s, i);
}
