/* supervisor_files.c: files of a run that are removed while it goes on: people clean
 * up, and so do machines. A process notices nothing of that: it writes on, into a file
 * that has no name any more. So it is looked, once a second, whether they are there. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "dist/supervisor.h"

static const double LOOK_SECONDS = 1;

/* What ranks and this process write from beginning to end, and what is lost with it. */
static const struct {
    const char *name, *loss;
} files[ETD_SUP_FILES] = {
    {"events.log",
     "what the run says from now on is not kept; viewers that are there go "
     "on"},
};

static bool
is_there(const struct etd_supervisor *s, const char *name)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", s->directory, name);
    return lstat(path, &st) == 0 || errno != ENOENT;
}

/* One that was there, and is gone. (Not all loggers write all files.) */
static void
look_at(struct etd_supervisor *s, int k)
{
    bool there = is_there(s, files[k].name);
    if (there)
        s->file_seen[k] = true;
    else if (s->file_seen[k])
        etd_sup_say(s, ET_LOG_WARN, "%s/%s was removed: %s", s->directory,
                    files[k].name, files[k].loss);
    s->file_seen[k] = s->file_seen[k] && there;
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
    for (int k = 0; k < ETD_SUP_FILES && there; k++)
        look_at(s, k);
    /* (Those that are written by line are made again by whoever does: loggers.h.) */
    for (int i = 0; i < s->l->nproc && there; i++)
        if (s->rank[i].log >= 0 && fstat(s->rank[i].log, &st) == 0 && st.st_nlink == 0)
            etd_sup_open_log(s, i);
}
